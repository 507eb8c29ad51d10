import HTTPSupport
import TransferCore
import TransportSupport

extension PatchLoop {
    /// Requests the server's offset. If that fails, and the server became unreachable after an interrupted request, saves the interrupted request.
    mutating func remoteOffset() async throws -> TUSServer.RemoteOffset {
        // Restarts the stall timeout, because the server should respond to HEAD quickly, however long it needed for earlier requests.
        reporter.reportActivity()
        let remoteOffset: TUSServer.RemoteOffset
        do {
            remoteOffset = try await server.offset(of: url, length: length)
        } catch let error as TransferError {
            if server.dialect.ietf != nil { throw try await explained(error) }
            // The server that spoke the upload's protocol may have completed the upload before it was replaced.
            if error.code == .protocolChanged, slot == .whole, let length, let last = await record[slot].unanswered,
                last.offset >= length - last.accepted
            {
                try await record.save { $0 = TUSCheckpoint() }
                throw server.outcomeUnknown(cause: error.cause)
            }
            if let request = server.profiles.requestBeforeOutage(of: url), await record[slot].uncountedRequest != request {
                try await record.save { [slot] in $0[slot].uncountedRequest = request }
            }
            throw error
        }
        reporter.reportAuthenticatedResponse()
        try await adopt(remoteOffset.tusResponse.dialect)
        return remoteOffset
    }

    /// Uses the version that the server accepted for this upload (IETF), and saves it.
    mutating func adopt(_ dialect: Dialect) async throws {
        guard dialect.version != server.dialect.version else { return }
        server.dialect = dialect
        try await record.save { [slot] in $0[slot].dialect = dialect.storedName }
    }

    /// Requests the server's offset, checks it, and saves it.
    mutating func requestOffset() async throws -> Int64 {
        let (offset, tusResponse) = try await remoteOffset()
        try checkPlausible(offset)
        if server.dialect.ietf != nil { try await readState(tusResponse, at: offset) }
        if growth != nil, tusResponse.length != nil { isLengthDeclared = true }
        try await confirm(offset, expires: tusResponse.expires)
        return offset
    }

    /// Rejects an offset that is higher than the number of bytes that the server can have.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/resumeLost``.
    func checkPlausible(_ offset: Int64) throws(TransferError) {
        // With the IETF protocol, the server may have bytes that this attempt has not sent, so the limit includes all available bytes.
        let reach = server.dialect.ietf == nil ? reach : max(reach, available)
        let limit = min(reach, RemoteUpload.sizes.upperBound)
        guard offset <= limit else {
            throw TransferError(
                .resumeLost, .uploadGone, "The server \(server.origin) claims to have \(offset) bytes, but can have at most \(limit).")
        }
    }
}
