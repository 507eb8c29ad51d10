import TransferKit

/// The model for a list view of uploads: a row for each session, in the order of the queue. The queue's delegate calls keep it up to date.
@MainActor
public final class UploadList: TransferQueueDelegate {
    /// The rows. To act on a row, pass its ID: its index can change at any time.
    public var rows: [SessionStatus] { list.order.sessions.compactMap { statuses[$0] } }

    /// Called after each event of the queue. A view would reload here.
    public var onChange: @MainActor () -> Void = {}

    private let queue: TransferQueue
    private var list = QueueList(QueueOrder(sessions: [], revision: 0))
    private var statuses: [SessionID: SessionStatus] = [:]
    private var undoSteps: [() async throws -> Void] = []

    /// Creates a list. Call ``follow()`` next.
    public init(_ queue: TransferQueue) {
        self.queue = queue
    }

    /// Reads the queue, and then applies its events.
    public func follow() async {
        // Set the delegate before reading, so that no change is missed. The queue does not retain its delegate.
        queue.setDelegate(self)
        await reload()
    }

    // MARK: Delegate

    /// Applies an event. The queue delivers one event at a time.
    @MainActor public func queue(_ queue: TransferQueue, didReceive event: QueueEvent) async {
        if list.apply(event.kind) == .outdated {
            await reload()
        } else {
            switch event.kind {
            case .progress(let id, let figures): statuses[id]?.statistics = figures
            case .added(let ids, _), .changed(let ids, _), .cancelled(let ids): await refresh(ids)
            case .removed(let ids, _): for id in ids { statuses[id] = nil }
            default: if let id = event.session { await refresh([id]) }
            }
        }
        onChange()
    }

    private func reload() async {
        list = QueueList(await queue.order())
        await refresh(list.order.sessions)
    }

    private func refresh(_ ids: [SessionID]) async {
        // The result does not contain sessions that were removed in between.
        for status in (try? await queue.sessions(in: .sessions(ids))) ?? [] { statuses[status.id] = status }
    }
}

/// The user's operations. Each operation saves a step that undoes the operation.
extension UploadList {
    /// Runs a session now. If no slot is free, the queue interrupts another session, which resumes later.
    public func runNow(_ id: SessionID) async throws {
        let wasHeld = try await queue.status(of: id).state == .held
        try await queue.run(id)
        undoSteps.append { [queue] in
            // A hold interrupts the session, and clears its priority. After a release, the session waits for its turn again.
            try await queue.hold(id)
            if !wasHeld { try await queue.release(id) }
        }
    }

    /// Moves a session to another index.
    public func move(_ id: SessionID, to index: Int) async throws {
        let oldIndex = try await queue.status(of: id).index
        try await queue.move(id, to: .index(index))
        undoSteps.append { [queue] in try await queue.move(id, to: .index(oldIndex)) }
    }

    /// Pauses a running session, or holds a waiting session.
    public func pause(_ id: SessionID) async throws {
        let state = try await queue.pause(id)
        undoSteps.append { [queue] in
            if state == .paused { try await queue.resume(id) } else { try await queue.release(id) }
        }
    }

    /// Cancels a session. The session stays in the list, and keeps its index and the bytes that the server already has.
    public func cancel(_ id: SessionID) async throws {
        try await queue.cancel(id)
        undoSteps.append { [queue] in try await queue.retry(id) }
    }

    /// Whether ``undo()`` has an effect.
    public var canUndo: Bool { !undoSteps.isEmpty }

    /// Undoes the last operation. Throws ``QueueError`` with the code `invalidTransition` if the operation can no longer be undone, for example
    /// because the session has completed.
    public func undo() async throws {
        try await undoSteps.popLast()?()
    }
}
