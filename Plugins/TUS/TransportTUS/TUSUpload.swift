import CurlEngine
import TransferCore
import TransportSupport

/// One attempt at one file.
struct TUSUpload {
    let server: TUSServer
    let file: FileReader
    let metadata: UploadMetadata
    let record: UploadRecord
    let options: AttemptOptions
    let reporter: AttemptReporter

    init(_ attempt: FileAttempt, server: TUSServer, file: FileReader, reporter: AttemptReporter) throws(TransferError) {
        self.server = server
        self.file = file
        self.reporter = reporter
        options = attempt.options
        metadata = try UploadMetadata(attempt)
        let checkpoint = attempt.checkpoint.flatMap(TUSCheckpoint.init) ?? TUSCheckpoint(whole: RemoteUpload(url: options.uploadURL))
        record = UploadRecord(checkpoint, reporter: reporter)
    }

    private var size: Int64 { file.source.size }

    func run() async throws -> TransferReceipt {
        do {
            try await transfer()
            try await file.verifyUnchanged()
        } catch let error as TransferError where error.failureClass == .sourceChanged {
            // What arrived is a part of one version, or a mix of two. Where uploads can't be removed, the error is all that says so.
            if let url = await record[.whole].url {
                try? await server.delete(url)
            }
            throw error
        }
        // The query may hold a signature.
        let url = await record[.whole].url
        return TransferReceipt(bytes: size, remoteURL: url.map { String($0.prefix { $0 != "?" }) })
    }

    private func transfer() async throws {
        if let url = await record[.whole].url {
            var sender = sender(to: url)
            return try await sender.resume()
        }
        let features = try await server.features()
        if let maximum = features.maximumSize, size > maximum {
            throw TransferError(
                .unsupported, .tooLarge, "The server \(server.origin) takes files of up to \(maximum) bytes; this one has \(size).")
        }
        let (url, offset) = try await create(features)
        var sender = sender(to: url)
        try await sender.send(from: offset)
    }

    private func sender(to url: String) -> ContentSender {
        let chunks = ChunkPlan(
            wanted: options.chunkSize ?? server.settings.chunkSize, multiple: server.settings.chunkMultiple, memory: server.memory,
            address: server.address)
        return ContentSender(
            server: server, file: file, record: record, slot: .whole, range: 0..<size, chunks: chunks, reporter: reporter, url: url)
    }

    /// Makes the upload at the server, with all of the content along if the file is small and the server takes that.
    ///
    /// - Returns: Its URL, and how much the server has of it.
    private func create(_ features: ServerFeatures) async throws -> (url: String, offset: Int64) {
        // Written before the request: whoever finds it after a crash knows that there may be an upload which bears this transfer's ID.
        try await record.save()
        let headers: HTTPHeaders = [server.dialect.lengthHeader: "\(size)", "Upload-Metadata": metadata.headerValue]
        if sendsContentAlong(features) {
            let answer = try await server.requestCreation(headers: headers, with: file, reporter: reporter)
            // Something on the way may not want content in a creation; the file itself may be welcome.
            if answer.status == 415 { server.memory.learn(of: server.address) { $0.refusesContentInCreation = true } }
            if answer.status != 413, answer.status != 415 {
                let url = try await server.created(answer)
                return (url, try await accepted(answer, by: url))
            }
        }
        let answer = try await server.requestCreation(headers: headers, reporter: reporter)
        let url = try await server.created(answer)
        try await record.confirm(0, of: .whole, expires: answer.expires, url: url)
        return (url, 0)
    }

    private func sendsContentAlong(_ features: ServerFeatures) -> Bool {
        let limit = min(server.settings.singleRequestSize, options.chunkSize ?? server.settings.chunkSize ?? .max)
        return size > 0 && size <= limit && options.creation == .automatic && features.offers(.creationWithUpload)
            && !server.memory.habits(of: server.address).refusesContentInCreation
    }

    /// How much of the content that was sent along the server took.
    private func accepted(_ answer: TUSAnswer, by url: String) async throws -> Int64 {
        let sent = answer.response.sent
        record.noteSent(sent.taken, of: .whole)
        var offset = answer.offset ?? 0
        if offset != size {
            // It may be silent on that, or have taken a part only: then it is asked, as after all that did not go as planned.
            try await record.confirm(0, of: .whole, expires: answer.expires, url: url)
            offset = try await server.offset(of: url, length: size).offset
        }
        guard offset <= sent.limit else {
            throw TransferError(
                .resumeLost, .uploadGone,
                "The server \(server.origin) claims to have \(offset) bytes, more than the \(sent.limit) that were sent."
            )
        }
        try await record.confirm(offset, of: .whole, expires: answer.expires, url: url)
        return offset
    }
}
