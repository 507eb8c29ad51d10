/// Where a session is in its life.
public enum SessionState: String, Hashable, Sendable, Codable, CaseIterable {
    /// In line; ``SessionStatus/why`` says what it waits for.
    case waiting
    /// Holds a slot, and its transport is at work.
    case running
    /// Interrupted by the app, with its slot kept; never goes on by itself.
    case paused
    /// Set aside by the app, without a slot; never starts by itself.
    case held
    /// Ended by the app; kept at its index until it is retried or removed.
    case cancelled
    /// All of its items are at their destination.
    case completed
    /// Ended with an error; kept at its index until it is retried or removed.
    case failed

    /// Whether nothing of the session is left to do by itself: completed, failed or cancelled.
    public var isEnded: Bool {
        switch self {
        case .completed, .failed, .cancelled: true
        case .waiting, .running, .paused, .held: false
        }
    }
}

/// What a running session does at the moment.
public enum SessionPhase: String, Hashable, Sendable, Codable {
    /// Its folders are read and written down as a list of files.
    case preparing
    /// Between the activation and the first byte of a file.
    case connecting
    /// Bytes move.
    case transferring
    /// All bytes of a file were sent; the server has yet to confirm them.
    case verifying
    /// Told to end; the transport is about to let go.
    case ending
}
