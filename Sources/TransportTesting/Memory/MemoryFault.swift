import Locking
public import TransferCore

/// A scripted fault in one attempt; see ``MemoryTransport/faults``.
public enum MemoryFault: Hashable, Sendable {
    /// The attempt fails with this error before its first byte.
    case fail(TransferError)

    /// The connection breaks after the attempt has transferred `afterBytes` bytes, usually before a checkpoint covers the last of these
    /// bytes.
    ///
    /// If at most `afterBytes` bytes of an upload remain, all of these bytes arrive, and the remote file is complete, but the response is lost. In a
    /// listing, the connection breaks after `afterBytes` entries, rounded up to a multiple of 100.
    case cut(afterBytes: Int64)

    /// The other end loses the content of an unfinished upload, or changes the version of a downloaded file. An attempt with a checkpoint
    /// fails with ``/TransferCore/FailureClass/resumeLost``.
    case forget
}

/// The pending faults. Each attempt or listing simulates the first fault that matches its remote name, and removes this fault from the list.
public final class MemoryFaultList: Sendable {
    private let pending = Locked<[(fault: MemoryFault, path: String?)]>([])

    init() {}

    /// Adds a fault at the end of the list. Call this method from any thread.
    ///
    /// - Parameters:
    ///   - fault: The fault.
    ///   - path: The remote name of the file, or nil for any file.
    ///   - times: The number of affected attempts or listings.
    public func append(_ fault: MemoryFault, for path: String? = nil, times: Int = 1) {
        pending.withLock { $0.append(contentsOf: repeatElement((fault: fault, path: path), count: times)) }
    }

    /// Whether no fault is pending.
    public var isEmpty: Bool { pending.withLock { $0.isEmpty } }

    func take(for path: RemotePath) -> MemoryFault? {
        pending.withLock { pending in
            guard let index = pending.firstIndex(where: { $0.path == nil || $0.path == path.description }) else { return nil }
            return pending.remove(at: index).fault
        }
    }
}
