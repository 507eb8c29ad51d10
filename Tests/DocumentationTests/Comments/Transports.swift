import TransferCore
import TransferKit
import TransportHTTP
import TransportSFTP
import TransportTUS
import TransportTesting

// The code in the doc comments of transports and of the modules for authors of transports; see ``DocCommentTests``.

// swift-format-ignore
private func endpoints() -> ([Endpoint], SessionOptions, TUSOptions) {
    var all: [Endpoint] = []
    do {
        // COMMENT HTTPOptions.swift
        let endpoint = Endpoint.http("https+put://bucket.example.com/in/", options: HTTPOptions(metadataPrefix: "x-amz-meta-"))
        // END
        all.append(endpoint)
    }
    do {
        // COMMENT SFTPOptions.swift
        let endpoint = Endpoint.sftp("sftp://me@files.example.com/in/", options: SFTPOptions(maxConnections: 4, keepTimes: true))
        // END
        all.append(endpoint)
    }
    do {
        // COMMENT TUSOptions.swift
        let endpoint = Endpoint.tus("https://upload.example.com/files/", options: TUSOptions(chunkSize: 50 << 20))
        // END
        all.append(endpoint)
    }
    // COMMENT HTTPOptions.swift
    let options = SessionOptions(settings: HTTPOptions(upload: .form, fileField: "reel").settings)
    // END
    return (all, options, extensions())
}

// swift-format-ignore
private func extensions() -> TUSOptions {
    // COMMENT TUSOptions.swift
    let options = TUSOptions(extensions: [.creation, .creationWithUpload, .termination])
    // END
    return options
}

// swift-format-ignore
private func hook(_ tokens: any Tokens) -> TUSTransport {
    // COMMENT HeaderHook.swift
    // One token for each file, including its retries.
    let transport = TUSTransport(reusingHeaders: .untilRejected) { request, headers in
        var headers = headers
        headers["Authorization"] = "Bearer \(try await tokens.token(for: request.item))"
        return headers
    }
    // END
    return transport
}

private protocol Tokens: Sendable {
    func token(for item: Int64) async throws -> String
}

// swift-format-ignore
private func faults() async throws {
    // COMMENT MemoryTransport.swift
    let memory = MemoryTransport()
    memory.faults.append(.cut(afterBytes: 100_000))
    let gate = memory.gate("reel.mov", atByte: 65_536)
    // … start the queue …
    try await gate.reached()
    gate.open()
    let content = memory.contents(of: "reel.mov")
    // END
    print(content?.count ?? 0)
}
