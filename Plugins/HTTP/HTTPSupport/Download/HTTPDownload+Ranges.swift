import CurlEngine
import TransferCore

extension HTTPDownload {
    /// Downloads all missing bytes, and saves checkpoints.
    func fetch(into part: PartFile) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { part.endCheckpointsDue() }
                try await fetchAll(into: part)
            }
            group.addTask { for await _ in part.checkpointsDue { try await syncAndSaveIfDue(part) } }
            try await group.waitForAll()
        }
    }

    /// Downloads all missing ranges, over several connections if possible. A server may allow fewer connections: if one connection has a
    /// transient failure without a requested delay (`Retry-After`), the other connections request its remaining bytes. Any other failure
    /// ends the attempt.
    private func fetchAll(into part: PartFile) async throws {
        let ends = try await withThrowingTaskGroup(of: [TransferError?].self) { group in
            if let length = part.known?.length {
                for _ in 0..<part.plan({ $0.connections(of: length, underWay: 0) }) { group.addTask { [try await work(on: part)] } }
            } else {
                group.addTask {
                    defer { part.endOpened() }
                    return [try await work(on: part)]
                }
                group.addTask { try await runOtherConnections(on: part) }
            }
            return try await group.reduce([], +)
        }
        var failure = ends.compactMap(\.self).first
        // If a connection failed after the other connections had finished, its range is still missing. This task downloads that range.
        if failure != nil, ends.contains(nil), !part.plan({ $0.isEmpty }) { failure = try await work(on: part) }
        let length = part.remote?.length
        if let failure, length == nil || part.received.prefix != length { throw failure }
    }

    /// Runs the other connections, but only after the first response has described the file and some of its bytes were written. If the other
    /// connections started earlier, two requests could open the part file.
    private func runOtherConnections(on part: PartFile) async throws -> [TransferError?] {
        for await _ in part.opened { break }
        guard part.writer != nil, let length = part.remote?.length else { return [] }
        let connections = part.plan { $0.connections(of: length, underWay: 1) } - 1
        return try await withThrowingTaskGroup(of: TransferError?.self) { group in
            for _ in 0..<connections { group.addTask { try await work(on: part) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Requests one range after another until no range is left.
    ///
    /// - Returns: The transient failure, without a requested delay, that ended the requests early; nil if no range is left.
    /// - Throws: Any other failure.
    private func work(on part: PartFile) async throws -> TransferError? {
        while let range = part.plan({ $0.nextRange() }) {
            do {
                try await fetch(range, of: part)
            } catch let error as TransferError where error.failureClass == .transient && error.retryAfter == nil {
                return error
            }
        }
        return nil
    }

    /// Requests one range. If the response does not cover it completely, adds the missing bytes to the plan.
    private func fetch(_ range: FileRange, of part: PartFile) async throws {
        let sink = RangeSink(range, of: part, at: source, check: check)
        do {
            let reporter = reporter
            let answer = try await source.get(
                headers(for: range, of: part), sink, threads, { reporter.allowance(upTo: $0) })
            if sink.isAccepted { try sink.checkEnd(of: answer.response) } else { try interpretRefusal(answer, to: range, of: part) }
        } catch is RangeSink.MustBeWhole {
            part.plan { $0.add(.whole) }
        } catch {
            if let rest = sink.rest { part.plan { $0.add(rest) } }
            throw error
        }
    }

    private func headers(for range: FileRange, of part: PartFile) -> HTTPHeaders {
        // The content must not be encoded, because positions count the bytes of the file.
        var headers: HTTPHeaders = ["Accept-Encoding": "identity"]
        headers["Range"] = range.headerValue
        if range.headerValue != nil { headers["If-Range"] = part.version?.validator }
        for field in check.requestHeaders { headers.append(field.name, field.value) }
        return headers
    }

    /// Interprets a response that is not the requested file or range. Returns if no bytes are missing, or if the plan has a new request.
    ///
    /// - Throws: The error for any other response.
    private func interpretRefusal(_ answer: (response: HTTPResponse, refusal: TransferError), to range: FileRange, of part: PartFile)
        throws(TransferError)
    {
        guard answer.response.status == 416, range.headerValue != nil else { throw answer.refusal }
        // The file may be empty: without a first byte, any range is invalid (RFC 9110, section 14.1.2). Requests the whole file instead.
        if part.version == nil { return part.plan { $0.add(.whole) } }
        // If the server has the same version, and the file ends where the range begins, no bytes are missing (RFC 9110, section 15.5.17).
        let reported = RemoteFile(status: 416, headers: answer.response.headers)
        let isSame = part.version.map { !reported.differs(from: $0, answer.response.headers) } ?? false
        if range.end == nil, isSame, ContentRange(answer.response.headers)?.total == range.start { return }
        source.quirks.recordChangedFile(source.file)
        throw TransferError(
            .resumeLost, .uploadGone, "\(source.name) changed during the download. The download must restart.")
    }
}
