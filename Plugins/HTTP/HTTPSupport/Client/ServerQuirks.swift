import Locking
package import TransferCore

/// Deviations of servers that requests have shown. Kept while the transport lives, and never stored.
package final class ServerQuirks: Sendable {
    /// A file of an endpoint. Its URL would not do: the query can have a signature that differs each time.
    package struct File: Hashable, Sendable {
        let endpoint: String
        let path: RemotePath

        /// - Parameters:
        ///   - endpoint: The endpoint's address.
        ///   - path: The file's remote name.
        package init(endpoint: String, path: RemotePath) {
            self.endpoint = endpoint
            self.path = path
        }
    }

    /// The maximum number of entries of each kind. Beyond that, all are dropped and detected again.
    private static let maximumCount = 1_000

    private struct State {
        var refusesExpectation: Set<Origin> = []
        /// By file, because a server can generate some files for each request and support ranges of others.
        var ignoresRanges: Set<File> = []
        var changing: Set<File> = []
        var earlySuccesses: [String: Int] = [:]
    }

    private let state = Locked(State())

    package init() {}

    /// Returns whether the server rejects `Expect: 100-continue`.
    func refusesExpectation(_ origin: Origin) -> Bool { state.withLock { $0.refusesExpectation.contains(origin) } }

    func noteRefusedExpectation(_ origin: Origin) { state.withLock { Self.insert(origin, into: &$0.refusesExpectation) } }

    /// Returns whether the server sends a file from its start when a range of it is requested.
    func ignoresRanges(_ file: File) -> Bool { state.withLock { $0.ignoresRanges.contains(file) } }

    func noteIgnoredRange(_ file: File) { state.withLock { Self.insert(file, into: &$0.ignoresRanges) } }

    /// Returns whether a file changed between two requests for ranges of it, and was not received since.
    func isChanging(_ file: File) -> Bool { state.withLock { $0.changing.contains(file) } }

    func noteChange(_ file: File) { state.withLock { Self.insert(file, into: &$0.changing) } }

    /// Notes that a file was received, so it no longer changes.
    func noteCompletion(_ file: File) { state.withLock { _ = $0.changing.remove(file) } }

    /// Notes that the server reported success before it had the whole file.
    ///
    /// - Returns: How often it has done so for this transfer.
    package func noteEarlySuccess(_ transferID: String) -> Int {
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
