import CurlEngine
import Locking
import TransferCore

/// Requests for which the server may create a record, for example an entry in a database.
extension HTTPUpload {
    /// Sends a request. If the server may create a record for the request, first reports this to the queue. If the request must not be
    /// repeated while its outcome is unknown, reports that too, before the last bytes are sent. After a failure, reports whether the server
    /// can't have created a record. If the process ends before the report that precedes the last bytes, the server has only a part of the request,
    /// so a later attempt can safely send the request again.
    ///
    /// - Parameters:
    ///   - length: The length of the request's body in bytes.
    ///   - position: The progress of the upload.
    ///   - send: Sends the body. A gate holds back its last bytes; nil to send all of it.
    /// - Throws: The error of `send`, or an error if the queue can't store a report.
    func recording(
        _ length: Int64, _ position: Position, _ send: @escaping @Sendable (RecordGate?) async throws -> SentBody
    ) async throws -> SentBody {
        guard leavesRecord else { return try await send(nil) }
        try await reporter.reportRecord()
        guard !server.options.repeatsUnknownOutcomes else { return try await send(nil) }
        let gate = RecordGate(length)
        if gate.isReached { try await open(gate) }
        do {
            let sent = try await withThrowingTaskGroup(of: SentBody?.self) { group in
                defer { group.cancelAll() }
                group.addTask { try await send(gate) }
                group.addTask {
                    if await gate.waitUntilReached() { try await open(gate) }
                    return nil
                }
                while let result = try await group.next() { if let result { return result } }
                throw CancellationError()
            }
            if isSuccess(sent.answer) {
                // The server may respond before it has received the last bytes.
                if !gate.isOpen { try await open(gate) }
            } else if gate.isOpen, !Self.statusesOfGateways.contains(sent.answer.status) {
                try await reporter.reportNoRecord()
            }
            return sent
        } catch {
            let neverArrived = [.connectionRefused, .hostNotFound].contains((error as? TransferError)?.code)
            // Without its last bytes, the request is incomplete. The error of the request matters more than an error of the report.
            if gate.isOpen, neverArrived || !position.state.withLock(\.isWhole) { try? await reporter.reportNoRecord() }
            throw error
        }
    }

    /// The statuses of a gateway that got no valid response from the server (RFC 9110, sections 15.6.3 and 15.6.5).
    private static let statusesOfGateways = [502, 504]

    /// Reports that the request must not be repeated while its outcome is unknown, and then lets the gate pass the last bytes.
    private func open(_ gate: RecordGate) async throws {
        try await reporter.reportRecord(mayRepeat: false)
        gate.open()
    }
}

/// Holds back the last bytes of a request's body until the queue has stored that the server may create a record.
final class RecordGate: Sendable {
    /// The number of bytes to hold back. A shorter body waits as a whole.
    private static let tail: Int64 = 64 * 1024
    /// The delay before the engine asks the gate again.
    private static let retryDelay = Duration.milliseconds(2)

    /// `room` is the number of bytes that may still be sent before the gate opens.
    private let state: Locked<(room: Int64, isOpen: Bool)>
    /// Yields when only the bytes that the gate holds back remain.
    private let (reached, reachedInput) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// - Parameter length: The length of the body in bytes.
    init(_ length: Int64) {
        state = Locked((max(0, length - Self.tail), false))
    }

    /// Whether the next bytes of the body must wait.
    var isReached: Bool { state.withLock { $0.room == 0 && !$0.isOpen } }

    var isOpen: Bool { state.withLock(\.isOpen) }

    func open() { state.withLock { $0.isOpen = true } }

    /// Returns whether the gate was reached; false if the task was cancelled first.
    func waitUntilReached() async -> Bool {
        for await _ in reached { return true }
        return false
    }

    /// Returns the number of bytes of the body that may be sent now, at most `limit`.
    ///
    /// If the client sends a body again from its first byte, the gate holds back more bytes than necessary.
    ///
    /// - Parameter allowance: Returns the number of bytes that the rate limits allow, at most the given number.
    func allowance(upTo limit: Int, _ allowance: (Int) -> Allowance) -> Allowance {
        let (room, isOpen) = state.withLock { $0 }
        guard !isOpen else { return allowance(limit) }
        guard room > 0 else {
            reachedInput.yield()
            return Allowance(bytes: 0, retryAfter: Self.retryDelay)
        }
        let granted = allowance(Int(min(Int64(limit), room)))
        state.withLock { $0.room = max(0, $0.room - Int64(max(0, granted.bytes))) }
        return granted
    }
}
