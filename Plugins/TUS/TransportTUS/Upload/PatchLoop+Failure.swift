import HTTPSupport
import TransferCore
import TransportSupport

extension PatchLoop {
    /// The total number of 409 responses with another offset, and of changes to another protocol version (IETF), that one attempt accepts
    /// before it fails.
    static let maximumConflicts = 3

    /// Requests the server's offset after a failed `PATCH`. The loop never sends content again before it knows this offset.
    ///
    /// - Parameter mayBeRefused: Whether the request had no `Expect`, so the server may have closed the connection because it rejects the content.
    /// - Returns: The offset from which to continue immediately.
    /// - Throws: The failure, if no other request is useful now.
    mutating func recover(
        _ failure: TransferError, from offset: Int64, _ checksum: RequestChecksum, count: Int64, status: Int? = nil,
        mayBeRefused: Bool = false
    ) async throws -> Int64 {
        let version = server.dialect.version
        let currentOffset: Int64
        do {
            currentOffset = try await requestOffset()
        } catch let error as TransferError where ![.resumeLost, .sourceLost].contains(error.failureClass) && error.code != .outcomeUnknown {
            // The request for the offset also failed. The first failure is more precise, but the second failure may contain the time to wait. If the
            // second failure is not permanent, a later attempt may still resolve the first failure.
            let mayBeTemporary = failure.failureClass == .permanent && ![.permanent, .unsupported].contains(error.failureClass)
            throw TransferError(
                mayBeTemporary ? error.failureClass : failure.failureClass, failure.code, failure.message, cause: failure.cause,
                retryAfter: failure.retryAfter ?? error.retryAfter)
        }
        // The running checksum covers only the content before this request, so it is useless at any other offset. With the IETF protocol, only
        // the checksum of the whole file matters. It stays known if the server kept the whole request, even without verifying the content.
        if currentOffset != offset {
            contentHash = server.dialect.ietf != nil && currentOffset == offset + count ? checksum.whole : nil
        }
        // The server compares a checksum only with a complete request, and a trailer may not have arrived.
        if currentOffset < offset + count || check.sendsTrailers { try await saveUnverified(currentOffset - offset) }
        let mayReturn = server.dialect.ietf == nil || resource.isComplete || count > 0
        if currentOffset == length, isLengthDeclared, mayReturn, status == nil || status != server.dialect.checksumMismatch {
            return currentOffset
        }
        if server.dialect.version != version, conflicts < Self.maximumConflicts {
            conflicts += 1
            return currentOffset
        }
        if mayBeRefused, currentOffset == offset {
            // Counts the bytes of the unanswered request now, because the next response removes the request from the checkpoint.
            if server.dialect.ietf == nil { await record.recordUncounted(nil, at: offset, of: slot) }
            expectsContinue = true
            return currentOffset
        }
        guard let status, try await canContinue(after: status, failure, from: offset, count: count, at: currentOffset) else {
            throw try await explained(failure)
        }
        return currentOffset
    }

    /// Returns whether another request is useful immediately after a rejected one.
    private mutating func canContinue(
        after status: Int, _ failure: TransferError, from offset: Int64, count: Int64, at currentOffset: Int64
    ) async throws -> Bool {
        switch status {
        case 400 where server.dialect.ietf == nil && !isLengthDeclared && !sendsLengthNow:
            // The server may require the length before the content.
            sendsLengthNow = true
            try await growth?.waitUntilComplete()
            return true
        case 400:
            try await throwRefusal(at: currentOffset, failure)
            return false
        case 401, 403:
            return server.client.hasHeaderHook && renewalsBeforeRejection != nil
        case 405, 501:
            return server.beginOverridingMethod()
        case 409:
            guard currentOffset != offset, conflicts < Self.maximumConflicts else { return false }
            conflicts += 1
            return true
        case server.dialect.checksumMismatch:
            mismatches += 1
            // One mismatch can be a transmission error. After two, the file may have changed.
            if mismatches > 1 { try await file.verifyUnchanged() }
            return currentOffset == offset && mismatches < Self.maximumMismatches
        case 413:
            return chunks.next(remaining: count) < count || chunks.shrink(below: count)
        default:
            return false
        }
    }

    /// Throws a transient error for the first 400, because it may come from a proxy. A second 400 at the same offset is permanent.
    private func throwRefusal(at offset: Int64, _ failure: TransferError) async throws {
        if await record[slot].refusedOffset == offset { throw failure }
        try await record.save { [slot] in $0[slot].refusedOffset = offset }
        throw TransferError(.transient, failure.code, failure.message, cause: failure.cause)
    }
}
