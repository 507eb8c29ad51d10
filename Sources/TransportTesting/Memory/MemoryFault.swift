import Locking
public import TransferCore

/// Something that goes wrong in one attempt on purpose; see ``MemoryTransport/faults``.
public enum MemoryFault: Hashable, Sendable {
    /// Fails with this error before the first byte.
    case fail(TransferError)

    /// Breaks the connection after this many bytes of the attempt arrived, before a checkpoint vouches for the last of them.
    ///
    /// If fewer are left, all of them arrive, the file is complete at the other end, and the answer that says so is lost. A listing breaks after
    /// so many entries.
    case cut(afterBytes: Int64)

    /// The other end forgets what it has of an unfinished file; an attempt with a checkpoint fails with ``FailureClass/resumeLost``.
    case forget
}

/// The faults that are still to happen. Each happens to the first attempt that starts after it was appended and that it is meant for.
public final class MemoryFaultList: Sendable {
    private let entries = Locked<[(fault: MemoryFault, path: String?)]>([])

    init() {}

    /// Adds a fault after the others. From any thread.
    ///
    /// - Parameters:
    ///   - path: The remote name that it happens to, or nil for whatever comes first.
    ///   - times: To how many attempts it happens.
    public func append(_ fault: MemoryFault, for path: String? = nil, times: Int = 1) {
        entries.withLock { $0.append(contentsOf: repeatElement((fault: fault, path: path), count: times)) }
    }

    /// Removes all faults.
    public func removeAll() {
        entries.withLock { $0 = [] }
    }

    /// Whether all faults have happened.
    public var isEmpty: Bool { entries.withLock { $0.isEmpty } }

    func take(for path: RemotePath) -> MemoryFault? {
        entries.withLock { entries in
            guard let index = entries.firstIndex(where: { $0.path == nil || $0.path == path.description }) else { return nil }
            return entries.remove(at: index).fault
        }
    }
}
