import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

/// The progress of an upload with the IETF protocol.
struct ResourceProgress: Sendable {
    /// Whether the server has completed the upload.
    var isComplete = false
    /// Whether the upload was already complete when the attempt resumed it. The response to the request that completed it was lost.
    var wasCompleteBefore = false
    /// The checksum of the whole file, if the session requires one.
    var digest: Checksum?
    /// The response to the request that completed the upload.
    var finalResponse: TUSResponse?
    /// The value of ``RemoteUpload/mayBeComplete`` before the current request: whether an earlier request may have completed the upload.
    var mayHaveBeenComplete: Bool?
}

extension Checksum {
    /// The value of `Repr-Digest` and `Content-Digest` (RFC 9530, section 2); nil for algorithms other than SHA-256.
    var digestField: String? { algorithm == .sha256 ? "sha-256=:\(Data(bytes).base64EncodedString()):" : nil }

    /// The value of `Want-Repr-Digest` with which the server should report the checksum of the file.
    static let wantedDigest = "sha-256=10"
}

/// The parts of the IETF protocol that have no equivalent in tus.
extension PatchLoop {
    /// Adds the `PATCH` headers that tus lacks.
    func addHeaders(of terms: IETFTerms, completes: Bool, _ checksum: RequestChecksum, to headers: inout HTTPHeaders) {
        headers[terms.completenessHeader] = terms.completeness(completes)
        headers["Content-Digest"] = checksum.content?.checksum.digestField
        guard completes, check.verifiesEachRequest else { return }
        headers["Repr-Digest"] = (resource.digest ?? checksum.whole?.checksum)?.digestField
        headers["Want-Repr-Digest"] = Checksum.wantedDigest
    }

    /// Saves that the next request may complete the upload. Called before that request.
    mutating func saveMayBeComplete() async throws {
        resource.mayHaveBeenComplete = await record[slot].mayBeComplete
        guard resource.mayHaveBeenComplete != true else { return }
        try await record.save { [slot] in $0[slot].mayBeComplete = true }
    }

    /// Restores the value that `mayBeComplete` had before the last request. Called if the server can't have all content of that request.
    func restoreMayBeComplete() async throws {
        try await record.save { [slot, resource] in $0[slot].mayBeComplete = resource.mayHaveBeenComplete }
    }

    /// Returns a closure that processes the interim responses to a `PATCH`.
    ///
    /// - Parameter end: The end of the request's content.
    func processInterims(upTo end: Int64) -> @Sendable (InterimWatch.Report) async throws -> Void {
        { [server, record, slot, growth, length] report in
            try server.checkLimits(report.limits, of: length)
            let confirmed = await record[slot].confirmed ?? 0
            guard let offset = report.offset, offset > confirmed, offset <= end else { return }
            try await record.confirm(offset, of: slot)
            growth?.confirmed(before: offset)
        }
    }

    /// Reads the upload's state from the response to a `HEAD`, or from a 409 response that contains the offset.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/resumeLost`` if the server lost confirmed bytes of a file, or completed the
    ///   upload with another size.
    mutating func readState(_ tusResponse: TUSResponse, at offset: Int64) async throws {
        guard let terms = server.dialect.ietf else { return }
        chunks.limits.update(with: tusResponse.limits)
        let (confirmed, mayBeComplete) = (await record[slot].confirmed ?? 0, await record[slot].mayBeComplete == true)
        let isAtEnd = offset == length
        switch tusResponse.isComplete {
        case true?:
            guard isAtEnd || length == nil else {
                throw TransferError(
                    .resumeLost, .uploadGone,
                    "The server \(server.origin) has completed the upload with \(offset) of \(length ?? 0) bytes.")
            }
            resource.isComplete = true
        case false?: await record.setMayBeComplete(nil, of: slot)
        case nil:
            resource.isComplete = isAtEnd && mayBeComplete && !terms.declaresCompletion
            if !isAtEnd { await record.setMayBeComplete(nil, of: slot) }
        }
        guard offset >= confirmed || growth != nil else {
            throw TransferError(
                .resumeLost, .uploadGone,
                "The server \(server.origin) has lost content: it has \(offset) of \(confirmed) bytes that it confirmed.")
        }
    }

    /// Returns the error to report for a failed request. If the upload is gone, and the server may have completed it before, the error
    /// reports an unknown outcome. Other errors are returned unchanged.
    func explained(_ error: TransferError) async throws -> TransferError {
        guard error.failureClass == .resumeLost, await record[slot].mayBeComplete == true else { return error }
        // If the user retries the file, the upload restarts.
        try await record.save { $0 = TUSCheckpoint() }
        return server.outcomeUnknown(cause: error.cause)
    }

    /// Handles a `PATCH` response, if it means something else in the IETF protocol than in tus.
    ///
    /// - Parameters:
    ///   - offset: The offset at which the request started.
    ///   - count: The number of bytes of the request's content.
    ///   - completes: Whether the request completes the upload.
    /// - Returns: The server's offset; nil if the response means the same as in tus.
    mutating func handleResponse(
        _ tusResponse: TUSResponse, from offset: Int64, count: Int64, _ completes: Bool, _ checksum: RequestChecksum
    ) async throws -> Int64? {
        let end = offset + count
        chunks.limits.update(with: tusResponse.limits)
        released = max(released, await record[slot].confirmed ?? 0)
        guard tusResponse.isSuccess else { return try await handleRejection(tusResponse, at: offset, count: count, completes) }
        renewalsBeforeRejection = nil
        if completes {
            if try await completesUpload(tusResponse, at: end) {
                if tusResponse.response.sent.accepted != count { try await restoreMayBeComplete() }
                try tusResponse.checkSent(count, .protocolViolation)
                resource.isComplete = true
                resource.finalResponse = tusResponse
                contentHash = checksum.whole
                try await confirm(end, expires: nil)
                return end
            }
            await record.setMayBeComplete(nil, of: slot)
            guard count > 0 else {
                throw TransferError(
                    .transient, .invalidResponse, "The server \(server.origin) has all bytes, but did not complete the upload.")
            }
        }
        // If the response has no offset, and arrived before all content was sent, only the old offset is certain.
        let confirmed = tusResponse.offset ?? (tusResponse.response.sent.accepted == count ? end : offset)
        try checkPlausible(confirmed)
        try await confirm(confirmed, expires: tusResponse.expires)
        contentHash = confirmed == end ? checksum.whole : nil
        let current = confirmed == end ? end : try await requestOffset()
        guard current > offset || resource.isComplete || count == 0 else {
            throw TransferError(.transient, .invalidResponse, "The server \(server.origin) kept none of the bytes that were sent.")
        }
        return current
    }

    /// Handles a rejected `PATCH`, if the rejection means something else in the IETF protocol than in tus.
    private mutating func handleRejection(
        _ tusResponse: TUSResponse, at offset: Int64, count: Int64, _ completes: Bool
    ) async throws -> Int64? {
        if completes, count == 0, tusResponse.problem?.kind == .completedUpload {
            resource.isComplete = true
            return offset
        }
        if completes, tusResponse.isComplete == true {
            try await record.save { $0 = TUSCheckpoint() }
            throw tusResponse.rejectionOfWholeFile
        }
        // After a server error, the server may have completed the upload. Any other rejection proves that this request did not complete
        // the upload, but an earlier request may have completed it.
        if completes, tusResponse.status < 500 { await record.setMayBeComplete(resource.mayHaveBeenComplete, of: slot) }
        if let named = tusResponse.namedVersion(among: Dialect.ietfVersions), named.version != server.dialect.version,
            conflicts < Self.maximumConflicts
        {
            conflicts += 1
            try await adopt(named)
            let current = try await requestOffset()
            // The running checksum covers only the content before this request.
            if current != offset { contentHash = nil }
            return current
        }
        guard let current = tusResponse.conflictOffset, current != offset, conflicts < Self.maximumConflicts else { return nil }
        conflicts += 1
        contentHash = nil
        try checkPlausible(current)
        try await readState(tusResponse, at: current)
        try await confirm(current, expires: tusResponse.expires)
        return current
    }

    /// Returns whether the server has completed the upload, according to a successful response to the request that should complete it.
    private mutating func completesUpload(_ tusResponse: TUSResponse, at end: Int64) async throws -> Bool {
        if let isComplete = tusResponse.isComplete { return isComplete }
        guard server.dialect.ietf?.declaresCompletion == true else { return tusResponse.offset.map { $0 >= end } ?? true }
        // The response lacks the header that its version requires.
        do {
            let (offset, state) = try await server.offset(of: url, length: length)
            return state.isComplete ?? (offset == end)
        } catch let error as TransferError where error.failureClass == .resumeLost {
            guard error.code != .protocolChanged else { throw server.outcomeUnknown(cause: error.cause) }
            // The server removes complete uploads.
            return true
        }
    }
}
