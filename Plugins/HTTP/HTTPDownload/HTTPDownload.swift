import CurlEngine
package import TransferCore
package import TransportSupport

/// One attempt to receive one file by `GET`, from where an earlier attempt got to if the server still has the same version of it (RFC 9110,
/// sections 13.1.5 and 14).
///
/// A part is continued only where the server names the version, by a strong validator; without one, each attempt begins at the first byte.
package struct HTTPDownload<Server: DownloadServer>: Sendable {
    private let server: Server
    private let destination: DownloadDestination
    private let checkpoint: Checkpoint?
    private let verification: Verification
    private let threads: WorkerThreads
    private let reporter: AttemptReporter

    /// - Throws: A ``TransferError`` if the attempt is no download.
    package init(
        _ attempt: FileAttempt, from server: Server, on threads: WorkerThreads, reporting reporter: AttemptReporter
    ) throws(TransferError) {
        self.server = server
        self.threads = threads
        self.reporter = reporter
        destination = try attempt.destination
        checkpoint = attempt.checkpoint
        verification = attempt.options.verification
    }

    /// - Throws: A ``TransferError``, after a checkpoint was saved for what arrived; or `CancellationError`.
    package func run() async throws -> TransferReceipt {
        var known: RemoteFile?
        var writer: FileWriter?
        if let checkpoint, checkpoint.confirmed > 0 {
            known = RemoteFile(checkpoint)
            let opened = try await FileWriter.open(destination, from: checkpoint.confirmed, on: threads)
            if opened.isInPlace { return try await finish(opened, nil, size: opened.start) }
            if let known, known.length == opened.start { return try await finish(opened, known, size: opened.start) }
            guard known?.validator != nil else {
                throw TransferError(.resumeLost, .uploadGone, "What was received of \(server.name) can't be continued; it begins anew.")
            }
            reporter.report(sent: opened.start, confirmed: opened.start)
            writer = opened
        }
        let (positions, continuation) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
        let sink = PartSink(
            server, to: destination, continuing: writer, of: known, needsDigest: verification == .checksum, on: threads, reporter: reporter,
            written: { continuation.yield($0) })
        do {
            let answer = try await fetch(into: sink, from: writer?.start ?? 0, known, positions, continuation)
            return try await complete(sink, answer, from: writer?.start ?? 0, known)
        } catch let inPlace as PartSink.IsInPlace {
            return try await finish(inPlace.writer, nil, size: inPlace.writer.start)
        } catch let upToDate as PartSink.IsUpToDate {
            let size = upToDate.remote.length ?? 0
            reporter.report(sent: size, confirmed: size)
            return TransferReceipt(bytes: size, remoteURL: server.shownURL)
        } catch {
            // What came is worth keeping, also when the attempt was cancelled.
            await Task { try? await keep(sink.position, of: sink) }.value
            throw error
        }
    }

    /// Receives, and saves checkpoints meanwhile.
    private func fetch(
        into sink: PartSink, from start: Int64, _ known: RemoteFile?, _ positions: AsyncStream<Int64>,
        _ continuation: AsyncStream<Int64>.Continuation
    ) async throws -> DownloadAnswer {
        // Content must come as it is: positions count its bytes.
        var headers: HTTPHeaders = ["Accept-Encoding": "identity"]
        if start > 0, let validator = known?.validator {
            headers["Range"] = "bytes=\(start)-"
            headers["If-Range"] = validator
        }
        if verification == .checksum { for field in ContentDigest.request { headers.append(field.name, field.value) } }
        let reporter = reporter
        return try await withThrowingTaskGroup(of: DownloadAnswer?.self) { [headers] group in
            group.addTask {
                defer { continuation.finish() }
                return try await server.get(headers, into: sink, pacing: { reporter.allowance(upTo: $0) })
            }
            group.addTask {
                for await position in positions {
                    guard sink.remote?.validator != nil, let writer = sink.writer, try await writer.syncIfDue(upTo: position) else {
                        continue
                    }
                    try await keep(position, of: sink)
                }
                return nil
            }
            var answer: DownloadAnswer?
            while let result = try await group.next() { answer = result ?? answer }
            guard let answer else { throw CancellationError() }
            return answer
        }
    }

    /// Makes what was received durable, and a checkpoint that vouches for it.
    private func keep(_ position: Int64, of sink: PartSink) async throws {
        guard let remote = sink.remote, remote.validator != nil, let writer = sink.writer else { return }
        guard position > checkpoint?.confirmed ?? 0 else { return }
        try await writer.sync(upTo: position)
        try await reporter.save(try remote.checkpoint(at: position))
        sink.confirm(position)
    }

    private func complete(_ sink: PartSink, _ answer: DownloadAnswer, from start: Int64, _ known: RemoteFile?) async throws
        -> TransferReceipt
    {
        guard let remote = sink.remote else {
            // There is nothing beyond the last byte of the same version (RFC 9110, section 15.5.17).
            if answer.response.status == 416, start > 0, let writer = sink.writer, ContentRange(answer.response.headers)?.total == start {
                return try await finish(writer, known, size: start)
            }
            if answer.response.status == 416, start > 0 {
                throw TransferError(.resumeLost, .uploadGone, "\(server.name) is shorter now than when its download began; it begins anew.")
            }
            throw answer.refusal
        }
        let writer = try await threads.run { try sink.open() }
        let size = sink.position
        if answer.response.status == 206, size < remote.length ?? size {
            // It may send less than was asked for (RFC 9110, section 15.3.7); the next attempt goes on behind that.
            throw TransferError(.transient, .connectionLost, "The server sent \(server.name) up to byte \(size) only.")
        }
        if let length = remote.length, length != size {
            throw TransferError(
                .protocolViolation, .badAnswer, "The server said that \(server.name) has \(length) bytes, and sent \(size).")
        }
        return try await finish(writer, remote, size: size)
    }

    private func finish(_ writer: FileWriter, _ remote: RemoteFile?, size: Int64) async throws -> TransferReceipt {
        var receipt = TransferReceipt(bytes: size, remoteURL: server.shownURL)
        if verification == .checksum, !writer.isInPlace {
            guard let digest = remote?.digest,
                try await digest.isThat(of: writer, size: size, on: threads, progress: reporter.reportActivity)
            else {
                throw TransferError(
                    .resumeLost, .checksumMismatch,
                    "What arrived of \(server.name) has another checksum than the server told; it begins anew.")
            }
            receipt.checksum = digest.text
        }
        reporter.report(total: size)
        try await writer.finish(size: size, modificationTime: remote?.modificationTime)
        reporter.report(sent: size, confirmed: size)
        if writer.finalPath != destination.path { receipt.localPath = writer.finalPath }
        return receipt
    }
}
