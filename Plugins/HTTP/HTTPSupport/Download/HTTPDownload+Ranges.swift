import CurlEngine
import TransferCore

extension HTTPDownload {
    func fetch(into partFile: PartFile) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { partFile.endCheckpointsDue() }
                try await fetchAll(into: partFile)
            }
            group.addTask { for await _ in partFile.checkpointsDue { try await syncAndSaveIfDue(partFile) } }
            try await group.waitForAll()
        }
    }

    /// Downloads all missing ranges, over several connections if possible. A server may allow fewer connections: if one connection has a
    /// transient failure without a requested delay (`Retry-After`), the other connections request the rest of the interrupted
    /// range. Any other failure ends the attempt.
    private func fetchAll(into partFile: PartFile) async throws {
        let outcomes = try await withThrowingTaskGroup(of: [TransferError?].self) { group in
            if let length = partFile.known?.length {
                for _ in 0..<partFile.plan({ $0.connections(of: length, underWay: 0) }) {
                    group.addTask { [try await fetchRanges(into: partFile)] }
                }
            } else {
                group.addTask {
                    defer { partFile.endOpened() }
                    return [try await fetchRanges(into: partFile)]
                }
                group.addTask { try await runOtherConnections(on: partFile) }
            }
            return try await group.reduce([], +)
        }
        var failure = outcomes.compactMap(\.self).first
        // If a connection failed after the other connections had finished, the failed range is still missing. This task downloads it.
        if failure != nil, outcomes.contains(nil), !partFile.plan({ $0.isEmpty }) { failure = try await fetchRanges(into: partFile) }
        let length = partFile.remote?.length
        if let failure, length == nil || partFile.received.prefix != length { throw failure }
    }

    /// Runs the other connections, but only after the first response has described the file and the file's first bytes were written. If the other
    /// connections started earlier, two requests could both open the part file.
    private func runOtherConnections(on partFile: PartFile) async throws -> [TransferError?] {
        for await _ in partFile.opened { break }
        guard partFile.writer != nil, let length = partFile.remote?.length else { return [] }
        let connections = partFile.plan { $0.connections(of: length, underWay: 1) } - 1
        return try await withThrowingTaskGroup(of: TransferError?.self) { group in
            for _ in 0..<connections { group.addTask { try await fetchRanges(into: partFile) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Requests one range after another until no range is left.
    ///
    /// - Returns: The transient failure, without a requested delay, that ended the requests early; nil if no range is left.
    /// - Throws: Any other failure.
    private func fetchRanges(into partFile: PartFile) async throws -> TransferError? {
        while let range = partFile.plan({ $0.nextRange() }) {
            do {
                try await fetch(range, of: partFile)
            } catch let error as TransferError where error.failureClass == .transient && error.retryAfter == nil {
                return error
            }
        }
        return nil
    }

    /// Requests one range. If the response does not cover it completely, adds the missing bytes to the plan.
    private func fetch(_ range: FileRange, of partFile: PartFile) async throws {
        let sink = RangeSink(range, of: partFile, at: source, check: check)
        do {
            let reporter = reporter
            let (response, refusal) = try await source.get(
                headers(for: range, of: partFile), sink, threads, { reporter.allowance(upTo: $0) })
            if sink.isAccepted {
                try sink.checkEnd(of: response)
            } else {
                try interpretRefusal(response, refusal, to: range, of: partFile)
            }
        } catch is RangeSink.NeedsWholeFile {
            partFile.plan { $0.add(.whole) }
        } catch {
            if let rest = sink.rest { partFile.plan { $0.add(rest) } }
            throw error
        }
    }

    private func headers(for range: FileRange, of partFile: PartFile) -> HTTPHeaders {
        // The content must not be encoded, because positions count the bytes of the file.
        var headers: HTTPHeaders = ["Accept-Encoding": "identity"]
        headers["Range"] = range.headerValue
        if range.headerValue != nil { headers["If-Range"] = partFile.version?.validator }
        for field in check.requestHeaders { headers.append(field.name, field.value) }
        return headers
    }

    /// Interprets a response that is not the requested file or range. Returns normally if no bytes are missing, or after it has added a request
    /// for the whole file to the plan.
    ///
    /// - Throws: The error for any other response.
    private func interpretRefusal(
        _ response: HTTPResponse, _ refusal: TransferError, to range: FileRange, of partFile: PartFile
    ) throws(TransferError) {
        guard response.status == 416, range.headerValue != nil else { throw refusal }
        // The file may be empty: without a first byte, any range is invalid (RFC 9110, section 14.1.2). Requests the whole file instead.
        if partFile.version == nil { return partFile.plan { $0.add(.whole) } }
        // If the server has the same version, and the file ends where the range begins, no bytes are missing (RFC 9110, section 15.5.17).
        let reported = RemoteFile(status: 416, headers: response.headers)
        let isSame = partFile.version.map { !reported.differs(from: $0, response.headers) } ?? false
        if range.end == nil, isSame, ContentRange(response.headers)?.total == range.start { return }
        source.quirks.recordChangedFile(source.file)
        throw TransferError(
            .resumeLost, .uploadGone, "\(source.name) changed during the download. The download must restart.")
    }
}
