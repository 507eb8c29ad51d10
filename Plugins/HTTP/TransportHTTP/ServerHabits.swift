import TransferCore

/// What was found out about servers by trying, by origin: kept while the transport lives, and never stored.
final class ServerHabits: Sendable {
    private struct State {
        var refusesExpectation: Set<String> = []
        var ignoresRanges: Set<String> = []
    }

    private let state = Locked(State())

    /// Whether the server broke the connection when it was asked before the content was sent.
    func refusesExpectation(_ origin: String) -> Bool { state.withLock { $0.refusesExpectation.contains(origin) } }

    func noteRefusedExpectation(_ origin: String) { state.withLock { _ = $0.refusesExpectation.insert(origin) } }

    /// Whether the server sends files from their start when it is asked for the rest of one.
    func ignoresRanges(_ origin: String) -> Bool { state.withLock { $0.ignoresRanges.contains(origin) } }

    func noteIgnoredRange(_ origin: String) { state.withLock { _ = $0.ignoresRanges.insert(origin) } }
}
