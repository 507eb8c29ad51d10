import HTTPSupport
import TransferCore
import TransportSupport

extension PatchLoop {
    /// How often in one attempt the server may answer 409 with another offset before the attempt fails.
    private static let maximumConflicts = 3

    /// Asks for the server's offset after a failed `PATCH`. The same offset is never sent again without asking.
    ///
    /// - Parameter mayBeRefused: Whether the server closed the connection on content that it was not asked about.
    /// - Returns: Where to continue, if that is useful at once.
    /// - Throws: The failure.
    mutating func recover(
        _ failure: TransferError, from offset: Int64, count: Int64, status: Int? = nil, mayBeRefused: Bool = false
    ) async throws -> Int64 {
        let now: Int64
        do {
            now = try await askOffset()
        } catch let error as TransferError where error.failureClass != .resumeLost && error.failureClass != .sourceLost {
            // The server does not answer this either. The first failure is more precise, but the second one knows how long to wait. The
            // first one is final only if nothing more could have been done about it.
            let mayPass = failure.failureClass == .permanent && ![.permanent, .unsupported].contains(error.failureClass)
            throw TransferError(
                mayPass ? error.failureClass : failure.failureClass, failure.code, failure.message, cause: failure.cause,
                retryAfter: failure.retryAfter ?? error.retryAfter)
        }
        // The checksum so far ends where this request began.
        if now != offset { contentHash = nil }
        // The checksum of a request does not cover a part of it, and may not have arrived as a trailer.
        if now < offset + count || check.sendsTrailers { try await noteUnverified(now - offset) }
        if now == length, isLengthDeclared, status != server.dialect.checksumMismatch { return now }
        if mayBeRefused, now == offset {
            expectsContinue = true
            return now
        }
        guard let status, try await canContinue(after: status, failure, from: offset, count: count, at: now) else { throw failure }
        return now
    }

    /// Whether another request is useful at once after a refused one.
    private mutating func canContinue(
        after status: Int, _ failure: TransferError, from offset: Int64, count: Int64, at now: Int64
    ) async throws -> Bool {
        switch status {
        case 400 where !isLengthDeclared && !sendsLengthNow:
            // The server may require the length before the content.
            sendsLengthNow = true
            try await growth?.waitUntilComplete()
            return true
        case 400:
            try await noteRefusal(at: now, failure)
            return false
        case 401, 403:
            return server.client.hasHeaderHook && rejectedSince != nil
        case 405, 501:
            return server.beginOverridingMethod()
        case 409:
            guard now != offset, conflicts < Self.maximumConflicts else { return false }
            conflicts += 1
            return true
        case server.dialect.checksumMismatch:
            mismatches += 1
            // Once can be a transmission error. Twice, the file may have changed.
            if mismatches > 1 { try await file.verifyUnchanged() }
            return now == offset && mismatches < Self.maximumMismatches
        case 413:
            return chunks.shrink(below: count)
        default:
            return false
        }
    }

    /// A single 400 can be a proxy's; a second one at the same offset is final.
    private func noteRefusal(at offset: Int64, _ failure: TransferError) async throws {
        if await record[slot].refusedOffset == offset { throw failure }
        try await record.save { [slot] in $0[slot].refusedOffset = offset }
        throw TransferError(.transient, failure.code, failure.message, cause: failure.cause)
    }
}
