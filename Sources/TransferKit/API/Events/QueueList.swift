/// A snapshot of the order of a queue's sessions.
public struct QueueOrder: Hashable, Sendable, Codable {
    /// The IDs of all sessions, in the order of the queue.
    public var sessions: [SessionID]
    /// The revision of the order, which increases by one with each change.
    public var revision: UInt64

    /// Creates a snapshot.
    public init(sessions: [SessionID], revision: UInt64) {
        self.sessions = sessions
        self.revision = revision
    }
}

/// A list of a queue's sessions, kept up to date with the queue's events, for a table view.
///
/// Subscribe to the events first, then read the order, so that no change is missed. Changes that the order already includes have no effect.
///
/// ```swift
/// let events = queue.events
/// var list = QueueList(await queue.order())
/// for await event in events {
///     switch list.apply(event.kind) {
///     case .inserted(let indices): tableView.insertRows(at: indices)
///     case .removed(let indices): tableView.deleteRows(at: indices)
///     case .moved(let index, let newIndex): tableView.moveRow(from: index, to: newIndex)
///     case .outdated: list = QueueList(await queue.order())
///     case nil: break
///     }
/// }
/// ```
public struct QueueList: Sendable, Hashable {
    /// A change of the list.
    public enum Change: Sendable, Hashable {
        /// Sessions were inserted. The value contains the sessions' indices after the change.
        case inserted(Range<Int>)
        /// Sessions were removed. The value contains the sessions' indices before the change, in ascending order.
        case removed([Int])
        /// A session was moved. The values are the session's indices before and after the change.
        case moved(from: Int, to: Int)
        /// Events are missing, so the list no longer follows the queue. Create a new list from ``TransferQueue/order()``.
        case outdated
    }

    /// The sessions and the revision of the list.
    public private(set) var order: QueueOrder
    /// The revision of the change whose events are being applied. Nil between changes, and during a change that the list already includes.
    private var revisionInProgress: UInt64?

    /// Creates a list from a snapshot.
    public init(_ order: QueueOrder) {
        self.order = order
    }

    /// Applies an event of the queue.
    ///
    /// In a delegate, pass the ``QueueEvent/kind`` of each received event.
    ///
    /// - Returns: The change of the list; nil if the event does not change the list.
    public mutating func apply(_ event: QueueEvent.Kind) -> Change? {
        switch event {
        case .gap: return .outdated
        case .willChangeQueue(let revision):
            revisionInProgress = revision > order.revision ? revision : nil
            return revision > order.revision + 1 ? .outdated : nil
        case .didChangeQueue:
            revisionInProgress = nil
            return nil
        default: break
        }
        guard let revisionInProgress, revisionInProgress == order.revision + 1, let change = change(event) else { return nil }
        order.revision = revisionInProgress
        return change
    }

    private mutating func change(_ event: QueueEvent.Kind) -> Change? {
        let all = order.sessions.indices
        switch event {
        case .added(let ids, let index):
            guard index >= 0, index <= all.endIndex else { return .outdated }
            order.sessions.insert(contentsOf: ids, at: index)
            return .inserted(index..<index + ids.count)
        case .removed(_, let indices):
            guard indices.allSatisfy(all.contains) else { return .outdated }
            for index in indices.reversed() { order.sessions.remove(at: index) }
            return .removed(indices)
        case .moved(let id, let index, let newIndex):
            guard all.contains(index), all.contains(newIndex) else { return .outdated }
            order.sessions.remove(at: index)
            order.sessions.insert(id, at: newIndex)
            return .moved(from: index, to: newIndex)
        default: return nil
        }
    }
}

extension TransferQueue {
    /// The order of the sessions, with its revision.
    public func order() async -> QueueOrder {
        await waitForEarlierInputs()
        return QueueOrder(
            sessions: scheduler.sessionIndex.order.compactMap { scheduler.sessionIndex[$0]?.id }, revision: scheduler.orderRevision)
    }
}
