import Locking
import TransferCore

/// What was found out about servers by trying: kept while the transport lives, and never stored.
final class ServerHabits: Sendable {
    /// How many files are remembered of each kind; with more, all are forgotten, and one more attempt at each begins anew.
    private static let maximumFiles = 1_000

    private struct State {
        /// Origins.
        var refusesExpectation: Set<String> = []
        /// URLs of files, without their queries: a server may make some of its files anew for each request, and have ranges of others.
        var ignoresRanges: Set<String> = []
        /// URLs of files, without their queries, that changed between two requests.
        var changing: Set<String> = []
        /// By the ID of the transfer, how often the server called it done before it had the file.
        var earlySuccesses: [String: Int] = [:]
    }

    private let state = Locked(State())

    /// Whether the server broke the connection when it was asked before the content was sent.
    func refusesExpectation(_ origin: String) -> Bool { state.withLock { $0.refusesExpectation.contains(origin) } }

    func noteRefusedExpectation(_ origin: String) { state.withLock { _ = $0.refusesExpectation.insert(origin) } }

    /// Whether the server sends a file from its start when it is asked for the rest of it.
    func ignoresRanges(_ url: String) -> Bool { state.withLock { $0.ignoresRanges.contains(url) } }

    func noteIgnoredRange(_ url: String) {
        state.withLock { state in
            if state.ignoresRanges.count >= Self.maximumFiles { state.ignoresRanges.removeAll() }
            state.ignoresRanges.insert(url)
        }
    }

    /// Whether a file changed between two requests for parts of it.
    func isChanging(_ url: String) -> Bool { state.withLock { $0.changing.contains(url) } }

    func noteChange(_ url: String) {
        state.withLock { state in
            if state.changing.count >= Self.maximumFiles { state.changing.removeAll() }
            state.changing.insert(url)
        }
    }

    /// Notes that the server called a transfer done before it had the file.
    ///
    /// - Returns: How often it has done so.
    func noteEarlySuccess(_ transferID: String) -> Int {
        state.withLock { state in
            if state.earlySuccesses.count >= Self.maximumFiles { state.earlySuccesses.removeAll() }
            state.earlySuccesses[transferID, default: 0] += 1
            return state.earlySuccesses[transferID] ?? 1
        }
    }
}
