import Locking
package import TransferCore

/// The limits and protocol deviations of servers, as their responses revealed them. An instance lives as long as its transport and is never
/// saved.
package final class ServerQuirks: Sendable {
    /// Identifies a file at an endpoint. The file's URL can't identify it, because the query may contain a signature that differs each
    /// time.
    package struct File: Hashable, Sendable {
        let endpoint: String
        let path: RemotePath

        package init(endpoint: String, path: RemotePath) {
            self.endpoint = endpoint
            self.path = path
        }
    }

    /// The maximum number of stored quirks of each kind. At the limit, all quirks of that kind are dropped, and are detected again.
    private static let maximumCount = 1_000

    private struct State {
        var refusesExpectation: Set<Origin> = []
        var requiresLength: Set<Origin> = []
        /// Stored per file, because a server may support ranges of stored files, but not of files that it generates.
        var ignoresRanges: Set<File> = []
        var changing: Set<File> = []
        var earlySuccesses: [String: Int] = [:]
    }

    private let state = Locked(State())

    package init() {}

    /// Returns whether the server rejects `Expect: 100-continue`.
    func refusesExpectation(_ origin: Origin) -> Bool { state.withLock { $0.refusesExpectation.contains(origin) } }

    func recordRefusedExpectation(_ origin: Origin) { state.withLock { Self.insert(origin, into: &$0.refusesExpectation) } }

    /// Returns whether the server rejects bodies of unknown length.
    package func requiresLength(_ origin: Origin) -> Bool { state.withLock { $0.requiresLength.contains(origin) } }

    package func recordRequiredLength(_ origin: Origin) { state.withLock { Self.insert(origin, into: &$0.requiresLength) } }

    /// Returns whether the server sends the whole file in response to a range request.
    func ignoresRanges(_ file: File) -> Bool { state.withLock { $0.ignoresRanges.contains(file) } }

    func recordIgnoredRange(_ file: File) { state.withLock { Self.insert(file, into: &$0.ignoresRanges) } }

    /// Returns whether a file changed between two range requests, and has not been downloaded since.
    func isChanging(_ file: File) -> Bool { state.withLock { $0.changing.contains(file) } }

    func recordChangedFile(_ file: File) { state.withLock { Self.insert(file, into: &$0.changing) } }

    /// Records that a file was downloaded, so it no longer counts as changing.
    func recordCompletion(_ file: File) { state.withLock { _ = $0.changing.remove(file) } }

    /// Counts an early success: the server reported success before it had the whole file.
    ///
    /// - Returns: The number of early successes that the server has reported for this transfer.
    package func recordEarlySuccess(_ transferID: String) -> Int {
        state.withLock { state in
            if state.earlySuccesses.count >= Self.maximumCount { state.earlySuccesses.removeAll() }
            state.earlySuccesses[transferID, default: 0] += 1
            return state.earlySuccesses[transferID] ?? 1
        }
    }

    private static func insert<Element>(_ element: Element, into set: inout Set<Element>) {
        if set.count >= maximumCount { set.removeAll() }
        set.insert(element)
    }
}
