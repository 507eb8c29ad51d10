/// The state of a session.
public enum SessionState: String, Hashable, Sendable, Codable, CaseIterable {
    /// In line for a slot; ``SessionStatus/why`` has the reason.
    case waiting
    /// Holds a slot, and its transport works.
    case running
    /// Interrupted by the app, with its slot; resumes only by a call.
    case paused
    /// Set aside by the app, without a slot; starts only by a call.
    case held
    /// Ended by the app; kept at its index until it is retried or removed.
    case cancelled
    /// All of its items are at their destination.
    case completed
    /// Ended with an error; kept at its index until it is retried or removed.
    case failed

    /// Whether the session has ended: completed, failed or cancelled.
    public var isEnded: Bool {
        switch self {
        case .completed, .failed, .cancelled: true
        case .waiting, .running, .paused, .held: false
        }
    }
}

/// The current work of a running session.
public enum SessionPhase: String, Hashable, Sendable, Codable {
    /// It reads its folders into a list of files.
    case preparing
    /// It is between the activation and the first byte of a file.
    case connecting
    /// Bytes move.
    case transferring
    /// All bytes of a file were sent, and the server has not confirmed them yet.
    case verifying
    /// It was asked to end, and its transport has not ended yet.
    case ending
}
