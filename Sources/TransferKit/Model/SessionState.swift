/// The state of a session.
public enum SessionState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Waits for its turn or for another condition; ``SessionStatus/why`` has the reason.
    case waiting
    /// Has a run in progress; see ``SessionPhase``.
    case running
    /// Paused by the app. Keeps its slot, and does not resume automatically.
    case paused
    /// Held by the app. Has no slot, and does not start automatically.
    case held
    /// Stored by ``TransferQueue/save(draft:)``, but not in the order of the queue, so it has no index. Never starts before it is enqueued.
    case draft
    /// Cancelled by the app; kept at its index until it is retried, run or removed.
    case cancelled
    /// Every item of the session is at its destination or was skipped.
    case completed
    /// Ended with an error; kept at its index until it is retried, run or removed.
    case failed

    /// Whether the session has ended: completed, failed or cancelled.
    public var isEnded: Bool {
        switch self {
        case .completed, .failed, .cancelled: true
        case .waiting, .running, .paused, .held, .draft: false
        }
    }
}

/// The current work of a running session.
public enum SessionPhase: String, Hashable, Sendable, Codable {
    /// The session reads its folders to make a list of files.
    case preparing
    /// The session is active, and no byte of its files in flight has been transferred yet.
    case connecting
    /// Bytes are being transferred.
    case transferring
    /// All bytes of the files in flight were sent or received, and the files are not complete yet.
    case verifying
    /// The session was interrupted, and its run has not ended yet.
    case ending
}
