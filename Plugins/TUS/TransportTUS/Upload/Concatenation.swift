import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

/// Uploads a file as segments. It sends the segments in parallel, each as a separate upload, and requests their concatenation (tus 1.0.0,
/// "Concatenation").
struct Concatenation {
    let server: TUSServer
    let features: TUSFeatures
    let record: TUSUploadRecord
    let metadata: UploadMetadata
    let size: Int64
    /// Creates the loop that sends one segment.
    let patchLoop: @Sendable (_ slot: TUSUploadRecord.Slot, _ range: Range<Int64>, _ url: String) -> PatchLoop

    /// Plans `count` segments, or fewer for a small file.
    static func plan(_ count: Int, of size: Int64) -> TUSCheckpoint {
        let segmentSize = quotient(size, Int64(count))
        var checkpoint = TUSCheckpoint()
        checkpoint.segmentSize = segmentSize
        checkpoint.segments = Array(repeating: RemoteUpload(), count: Int(quotient(size, segmentSize)))
        return checkpoint
    }

    /// Returns `size / divisor`, rounded up.
    private static func quotient(_ size: Int64, _ divisor: Int64) -> Int64 { size / divisor + (size % divisor > 0 ? 1 : 0) }

    /// Sends the remaining bytes of all segments, requests their concatenation, and removes the segments.
    ///
    /// - Returns: The segments that could not be removed.
    func run() async throws -> RemainingSegments {
        let ranges = try await ranges()
        if let url = await record[.whole].url, try await isComplete(url) { return try await removeSegments() }
        let initial = await record.checkpoint
        if features.offers(.concatenationUnfinished), await record[.whole].url == nil {
            try await forEachSegment(ranges) { try await create($0, $1) }
            try await createFinal(isEarly: true)
        }
        let checkpoint = await record.checkpoint
        // If the final upload exists and all segments are confirmed, the server may have removed the segments, so their state is not requested.
        if checkpoint.whole.url == nil || checkpoint.confirmed < size {
            try await forEachSegment(ranges) { slot, range in
                if initial[slot].url == nil { try await begin(slot, range) } else { try await resume(slot, range) }
            }
        }
        if await record[.whole].url == nil { try await createFinal() }
        guard let url = await record[.whole].url, try await isComplete(url) else {
            throw TransferError(
                .transient, .serverError, "The server \(server.origin) has all segments of the file, but has not concatenated them yet.")
        }
        return try await removeSegments()
    }

    /// Returns each segment's range of the file, from the number and size of the segments in the checkpoint.
    private func ranges() async throws(TransferError) -> [Range<Int64>] {
        let checkpoint = await record.checkpoint
        guard let segments = checkpoint.segments, let segmentSize = checkpoint.segmentSize, segmentSize > 0,
            Int64(segments.count) == Self.quotient(size, segmentSize)
        else {
            throw TransferError(.resumeLost, .uploadGone, "The stored segments do not match the file's size of \(size) bytes.")
        }
        return stride(from: 0, to: size, by: Int64.Stride(segmentSize)).map { $0..<$0 + min(segmentSize, size - $0) }
    }

    /// Runs a closure for each segment, in parallel.
    ///
    /// After a transient failure of one segment, the other segments continue, because their progress is worth keeping. Any other failure,
    /// and a failure with `Retry-After`, stops all segments.
    private func forEachSegment(
        _ ranges: [Range<Int64>], _ body: @escaping @Sendable (TUSUploadRecord.Slot, Range<Int64>) async throws -> Void
    ) async throws {
        let failure = try await withThrowingTaskGroup(of: TransferError?.self) { group in
            for (number, range) in ranges.enumerated() {
                group.addTask {
                    do {
                        try await body(.segment(number), range)
                        return nil
                    } catch let error as TransferError where error.failureClass == .transient && error.retryAfter == nil {
                        return error
                    }
                }
            }
            return try await group.reduce(nil) { $0 ?? $1 }
        }
        if let failure { throw failure }
    }

    /// Creates the upload of a segment, unless it exists.
    private func create(_ slot: TUSUploadRecord.Slot, _ range: Range<Int64>) async throws {
        guard await record[slot].url == nil else { return }
        var headers: HTTPHeaders = [server.dialect.lengthHeader: "\(range.count)"]
        headers[server.dialect.concatenationHeader] = "partial"
        let tusResponse = try await server.requestCreation(metadata, headers: headers)
        try await record.confirm(0, of: slot, expires: tusResponse.expires, url: try await server.created(tusResponse))
    }

    /// Sends the rest of a segment. If the server has lost the segment, or may have uncounted bytes at its start, restarts only this segment,
    /// provided that the final upload was not requested yet.
    private func resume(_ slot: TUSUploadRecord.Slot, _ range: Range<Int64>) async throws {
        guard let url = await record[slot].url else { return try await begin(slot, range) }
        // Segments can't be replaced after the final upload was requested. The server may have concatenated and removed the segments.
        let checkpoint = await record.checkpoint
        let isReplaceable = checkpoint.whole.url == nil && checkpoint.asksForWhole != true
        do {
            let (isAbandoned, remoteOffset) =
                isReplaceable ? try await server.abandonIfUncounted(checkpoint[slot], length: Int64(range.count)) : (false, nil)
            guard isAbandoned else {
                var patchLoop = patchLoop(slot, range, url)
                return try await patchLoop.resume(from: remoteOffset)
            }
            try await record.save { $0[slot] = RemoteUpload() }
        } catch let error as TransferError where error.failureClass == .resumeLost && isReplaceable {
            try await record.save { $0[slot] = RemoteUpload() }
            if let backOffError = await server.removeIfAllowed([url]) { throw backOffError }
        }
        try await begin(slot, range)
    }

    /// Creates the upload of a segment, and sends the whole segment.
    private func begin(_ slot: TUSUploadRecord.Slot, _ range: Range<Int64>) async throws {
        try await create(slot, range)
        guard let url = await record[slot].url else { return }
        var patchLoop = patchLoop(slot, range, url)
        try await patchLoop.send(from: 0)
    }

    /// Requests the concatenation. If the response is lost, the next attempt repeats the request.
    ///
    /// - Parameter isEarly: Whether segments are still incomplete. A server may announce support for such an early request and still
    ///   respond with 400. This method then returns, and the transport requests the concatenation after all segments are complete.
    private func createFinal(isEarly: Bool = false) async throws {
        let segments = await record.checkpoint.segments ?? []
        let addresses = segments.compactMap(\.url).map(address(ofSegment:))
        try await record.save { $0.asksForWhole = true }
        var headers = HTTPHeaders()
        headers[server.dialect.concatenationHeader] = "final;\(addresses.joined(separator: " "))"
        if !isEarly { record.reportWaiting() }
        let tusResponse = try await server.requestCreation(metadata, headers: headers)
        if tusResponse.status == 404 || tusResponse.status == 410 {
            let cause = "POST returned \(tusResponse.status)"
            guard try await hasAllSegments() else {
                throw TransferError(
                    .resumeLost, .uploadGone, "The server \(server.origin) no longer has all segments of the file.", cause: cause)
            }
            throw TransferError(
                .permanent, .rejected, "The server \(server.origin) has all segments of the file, but does not concatenate them.",
                cause: cause)
        }
        guard tusResponse.isSuccess else {
            // A server that rejects the request (4xx) has created nothing.
            if (400..<500).contains(tusResponse.status) { try await record.save { $0.asksForWhole = nil } }
            if isEarly, tusResponse.status == 400 { return }
            throw try await server.refused(tusResponse)
        }
        let url = try await server.created(tusResponse)
        try await record.save { $0.whole.url = url }
    }

    private func hasAllSegments() async throws -> Bool {
        do {
            for url in await record.checkpoint.segments?.compactMap(\.url) ?? [] { _ = try await server.offset(of: url, length: nil) }
            return true
        } catch let error as TransferError where error.failureClass == .resumeLost {
            return false
        }
    }

    /// Returns a segment's URL, without the origin if that is the endpoint's origin, because a server behind a proxy may not recognize the
    /// public origin as its own.
    private func address(ofSegment url: String) -> String {
        guard let components = URLComponents(string: url), components.url.flatMap(Origin.init) == server.origin else { return url }
        return components.percentEncodedPath + (components.percentEncodedQuery.map { "?\($0)" } ?? "")
    }

    /// Checks whether the server has the whole file. While segments are missing, the server reports no offset (tus 1.0.0, "Upload-Concat").
    private func isComplete(_ url: String) async throws -> Bool {
        try await server.finalOffset(of: url, length: size) == size
    }

    /// Removes the segments, which would otherwise use space on the server until they expire.
    private func removeSegments() async throws -> RemainingSegments {
        var remaining = RemainingSegments(urls: await record.checkpoint.segments?.compactMap(\.url) ?? [])
        try await withThrowingTaskGroup(of: (url: String, failure: TransferError?).self) { group in
            for url in remaining.urls {
                group.addTask {
                    do {
                        try await server.delete(url)
                        return (url, nil)
                    } catch let error as TransferError {
                        return (url, error)
                    }
                }
            }
            while let (url, failure) = try await group.next() {
                remaining.recordRemoval(failure, of: url)
                if let failure, failure.asksToBackOff { break }
            }
            group.cancelAll()
        }
        return remaining
    }
}

/// The segments that remain on the server after the file is complete.
struct RemainingSegments {
    /// The segments that can be removed later.
    private(set) var urls: [String]
    /// The first failure to remove a segment; nil if there was none, or if the server does not support removal.
    private var reason: TransferError?

    init(urls: [String]) {
        self.urls = urls
    }

    /// Stores the result of removing a segment.
    ///
    /// - Parameter failure: The error; nil if the segment was removed.
    mutating func recordRemoval(_ failure: TransferError?, of url: String) {
        if failure == nil || failure?.failureClass == .unsupported { urls.removeAll { $0 == url } }
        if reason == nil, let failure, failure.code != .unsupported { reason = failure }
    }

    /// The checkpoint with which the queue removes the segments later; nil if no segment can be removed later.
    var leftovers: Checkpoint? {
        get throws { urls.isEmpty ? nil : try TUSCheckpoint(leftovers: urls).encoded(atMost: 0) }
    }

    /// The warning for the receipt; nil if all segments were removed, or if the server does not support removal.
    func warning(_ origin: Origin) -> String? {
        reason.map { "Segments of the file remain on the server \(origin)\(urls.isEmpty ? "" : " until the queue removes them"): \($0)" }
    }
}
