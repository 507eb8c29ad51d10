/// An operation on existing sessions. ``ControllableQueue`` has a method of the same name for each operation.
public enum SessionOperation: Hashable, Sendable, Codable {
    /// Runs the session now. A completed session runs again only with `again`.
    case run(again: Bool = false)
    /// Makes the session the next to start.
    case runNext
    /// Pauses a running session, which keeps its slot. Holds a waiting session instead.
    case pause
    /// Resumes the session after a pause, or releases it after a hold.
    case resume
    /// Holds the session until it is released or run.
    case hold
    /// Releases the session after a hold.
    case release
    /// Lets another session start first; a running or paused session releases its slot.
    case yield
    /// Cancels the session. Its unfinished content stays, so that a retry resumes; with `discarding`, the queue removes the content.
    case cancel(discarding: Bool = false)
    /// Retries the session after it failed or was cancelled.
    case retry
    /// Removes the session. With `isForced`, removes it even if other sessions depend on it; those sessions then lose the dependency.
    case remove(isForced: Bool = false)
    /// Moves the session.
    case move(to: MoveDestination)
    /// Adds the draft to the queue, at the end unless a destination is given. With `isHeld`, the session is then held.
    case enqueue(to: MoveDestination = .end, isHeld: Bool = false)
    /// Changes the properties for which the update has a value.
    indirect case update(SessionUpdate)

    /// The participle of the operation, for messages such as "so it can't be removed".
    package var participle: String {
        switch self {
        case .run: "run"
        case .runNext: "started next"
        case .pause: "paused"
        case .resume: "resumed"
        case .hold: "held"
        case .release: "released"
        case .yield: "made to yield"
        case .cancel: "cancelled"
        case .retry: "retried"
        case .move: "moved"
        case .enqueue: "enqueued"
        case .update: "changed"
        case .remove: "removed"
        }
    }
}
