import CurlEngine
import HTTPSupport
import TransferCore

/// Lists one folder of a WebDAV server with `PROPFIND` (RFC 4918, section 9.1).
struct WebDAVListing: Sendable {
    /// The maximum number of entries to pass to `receive` in one call.
    private static let batchSize = 1_000
    /// The maximum number of bytes of a response, enough for about 10,000,000 entries. Without this limit, a response could be endless.
    private static let maximumBytes: Int64 = 4 << 30
    /// The body of a request for only the properties that a listing needs (RFC 4918, section 15).
    private static let body = Array(
        #"<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/></prop></propfind>"#.utf8)

    private let server: HTTPEndpointClient
    private let path: RemotePath
    private let receive: @Sendable ([RemoteEntry]) async throws -> Void

    init(_ attempt: ListingAttempt, at server: HTTPEndpointClient, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) {
        self.server = server
        path = attempt.remotePath
        self.receive = receive
    }

    /// Lists the folder.
    ///
    /// - Throws: A ``TransferError``, `CancellationError`, or the error of `receive`.
    func run() async throws {
        let (path, origin) = (path, server.origin)
        let sink = ListingSink(maximumBytes: Self.maximumBytes) { problem in
            TransferError(.protocolViolation, .invalidResponse, "The listing of \(path) at \(origin) \(problem).")
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { sink.end() }
                try await request(sink)
            }
            group.addTask {
                for await _ in sink.arrivals { try await deliver(sink) }
                try Task.checkCancellation()
                try await deliver(sink)
            }
            // The first error ends this loop, which cancels the other task.
            while try await group.next() != nil {}
        }
    }

    private func deliver(_ sink: ListingSink) async throws {
        while let entries = sink.take(Self.batchSize) { try await receive(entries) }
    }

    private func request(_ sink: ListingSink) async throws {
        let endpointResponse = try await sendOrRepeat(server.address.folder(path), depth: 1, sink)
        // Apache rejects the URL of a file if it ends with a slash.
        if endpointResponse.status == 400, try await isFile() { throw notAFolder }
        guard endpointResponse.status == 207 else { throw endpointResponse.listingFailure(of: path) }
        guard try sink.finish() else { throw notAFolder }
    }

    private func isFile() async throws -> Bool {
        let sink = ListingSink(maximumBytes: Self.maximumBytes) { TransferError(.protocolViolation, .invalidResponse, $0) }
        let endpointResponse = try await sendOrRepeat(server.address.download(TransferNames(path)), depth: 0, sink)
        return try endpointResponse.status == 207 && !sink.finish()
    }

    /// Sends a `PROPFIND` request, and repeats it once if the connection broke before the listing began.
    private func sendOrRepeat(_ url: String, depth: Int, _ sink: ListingSink) async throws -> EndpointResponse {
        do {
            return try await send(url, depth: depth, sink)
        } catch let error as TransferError where error.code == .connectionLost && !sink.hasBegun {
            // The server may have closed an idle connection. `PROPFIND` is safe to repeat (RFC 4918, section 9.1).
            return try await send(url, depth: depth, sink)
        }
    }

    private func send(_ url: String, depth: Int, _ sink: ListingSink) async throws -> EndpointResponse {
        try await server.send(
            "PROPFIND", to: url, headers: ["Depth": "\(depth)", "Content-Type": "application/xml; charset=utf-8"],
            body: .bytes(Self.body), sink: sink, pacing: { sink.allowance(upTo: $0) }, prepare: { sink.begin($0.url) })
    }

    private var notAFolder: TransferError {
        TransferError(.permanent, .noSuchRemoteFile, "\(path) is a file at \(server.origin), not a folder.")
    }
}

extension EndpointResponse {
    fileprivate func listingFailure(of path: RemotePath) -> TransferError {
        switch status {
        case 404, 410: error(.permanent, .noSuchRemoteFile, "has no folder \(path)")
        case 405, 501:
            error(
                .unsupported, .unsupported,
                "does not list folders by WebDAV; remove the account's setting webDAV, and add the files one by one")
        case 200..<300: error(.unsupported, .notThisProtocol, "responded to PROPFIND with something other than the listing of a folder")
        case 301, 302, 303: error(.permanent, .rejected, "redirects the listing of \(path); write the new address in the account")
        default: failure("listing")
        }
    }
}
