import Locking
import TransferCore

/// What was found out about servers by trying: kept while the transport lives, and never stored.
final class ServerHabits: Sendable {
    /// A file of an endpoint. Its URL would not do: it may have the name in its query, beside a signature that is another one each time.
    struct File: Hashable {
        /// The endpoint's address.
        let endpoint: String
        let path: RemotePath
    }

    /// How many files or origins are remembered of each kind; with more, all are forgotten, and are found out once more.
    private static let maximumCount = 1_000

    private struct State {
        /// Origins.
        var refusesExpectation: Set<String> = []
        /// Files: a server may make some of them anew for each request, and have ranges of others.
        var ignoresRanges: Set<File> = []
        /// Files that changed between two requests, and were not received since.
        var changing: Set<File> = []
        /// By the ID of the transfer, how often the server called it done before it had the file.
        var earlySuccesses: [String: Int] = [:]
    }

    private let state = Locked(State())

    /// Whether the server broke the connection when it was asked before the content was sent.
    func refusesExpectation(_ origin: String) -> Bool { state.withLock { $0.refusesExpectation.contains(origin) } }

    func noteRefusedExpectation(_ origin: String) { state.withLock { Self.insert(origin, into: &$0.refusesExpectation) } }

    /// Whether the server sends a file from its start when it is asked for the rest of it.
    func ignoresRanges(_ file: File) -> Bool { state.withLock { $0.ignoresRanges.contains(file) } }

    func noteIgnoredRange(_ file: File) { state.withLock { Self.insert(file, into: &$0.ignoresRanges) } }

    /// Whether a file changed between two requests for parts of it.
    func isChanging(_ file: File) -> Bool { state.withLock { $0.changing.contains(file) } }

    func noteChange(_ file: File) { state.withLock { Self.insert(file, into: &$0.changing) } }

    /// Notes that a file was received, so that it did not change any more.
    func noteCompletion(_ file: File) { state.withLock { _ = $0.changing.remove(file) } }

    private static func insert<Element>(_ element: Element, into set: inout Set<Element>) {
        if set.count >= maximumCount { set.removeAll() }
        set.insert(element)
    }

    /// Notes that the server called a transfer done before it had the file.
    ///
    /// - Returns: How often it has done so.
    func noteEarlySuccess(_ transferID: String) -> Int {
        state.withLock { state in
            if state.earlySuccesses.count >= Self.maximumCount { state.earlySuccesses.removeAll() }
            state.earlySuccesses[transferID, default: 0] += 1
            return state.earlySuccesses[transferID] ?? 1
        }
    }
}
