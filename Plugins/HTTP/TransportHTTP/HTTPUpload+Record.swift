import CurlEngine
import Locking
import TransferCore

/// Requests for which the server may create a record, for example a row in a database.
extension HTTPUpload {
    /// Sends a request. If the server may create a record for the request, first reports this to the queue. If the request must not be
    /// repeated while its outcome is unknown, also reports that, before the last bytes are sent. If the process ends before this second report,
    /// the server has only part of the request, so a later attempt can safely send it again. If the request fails, and the server can't have
    /// created a record, reports that as well.
    ///
    /// - Parameters:
    ///   - length: The length of the request's body in bytes.
    ///   - bodyProgress: The progress of the request's body.
    ///   - send: Sends the body. Its parameter is a gate that holds back the last bytes of the body, or nil to hold back none.
    /// - Throws: The error of `send`, or an error if the queue can't store a report.
    func sendReportingRecord(
        _ length: Int64, _ bodyProgress: BodyProgress, _ send: @escaping @Sendable (RecordGate?) async throws -> SentBody
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
            if isSuccess(sent.endpointResponse) {
                // The server may respond before it has received the last bytes.
                if !gate.isOpen { try await open(gate) }
            } else if gate.isOpen, !Self.gatewayStatuses.contains(sent.endpointResponse.status) {
                try await reporter.reportNoRecord()
            }
            return sent
        } catch {
            let cannotHaveArrived = [.connectionRefused, .hostNotFound].contains((error as? TransferError)?.code)
            // Without its last bytes, the request is incomplete. The error of the request matters more than an error of the report.
            if gate.isOpen, cannotHaveArrived || !bodyProgress.state.withLock(\.isWhole) { try? await reporter.reportNoRecord() }
            throw error
        }
    }

    /// The statuses of a gateway that got no valid response from the server (RFC 9110, sections 15.6.3 and 15.6.5).
    private static let gatewayStatuses = [502, 504]

    /// Reports that the request must not be repeated while its outcome is unknown, and then opens the gate for the last bytes.
    private func open(_ gate: RecordGate) async throws {
        try await reporter.reportRecord(mayRepeat: false)
        gate.open()
    }
}

/// Holds back the last bytes of a request's body until the queue has stored that the request must not be repeated while its outcome is unknown.
final class RecordGate: Sendable {
    /// The number of bytes to hold back. A shorter body waits as a whole.
    private static let tail: Int64 = 64 * 1024
    /// The delay after which the engine calls the gate again.
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

    /// Returns the allowance for the next bytes of the body, at most `limit` bytes.
    ///
    /// If the client sends a body again from its first byte, the gate holds back more bytes than necessary.
    ///
    /// - Parameter allowance: Returns the allowance of the rate limits, at most the given number of bytes.
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
