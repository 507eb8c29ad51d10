public import Foundation
public import TransferCore

/// Where a session is in its life.
public enum SessionState: String, Hashable, Sendable, Codable, CaseIterable {
    /// In line; ``SessionStatus/why`` says what it waits for.
    case waiting
    /// Holds a slot, and its transport is at work.
    case running
    /// All of its items are at their destination.
    case completed
    /// Ended with an error; kept until it is removed.
    case failed
}

/// What a running session does at the moment.
public enum SessionPhase: String, Hashable, Sendable, Codable {
    /// Between the activation and the first byte of a file.
    case connecting
    /// Bytes move.
    case transferring
    /// All bytes of a file were sent; the server has yet to confirm them.
    case verifying
}

/// Why a waiting session does not run: the first of its conditions that is not met.
public enum WaitReason: Hashable, Sendable, CustomStringConvertible {
    /// The queue is stopped or stopping.
    case queueNotRunning
    /// None of the account's endpoints names a transport that this process has.
    case transportMissing(TransportID)
    /// The account is blocked until a person acts.
    case accountBlocked(TransferError)
    /// The last attempt failed and the next one is due then.
    case retry(at: Date)
    /// Another session is before it.
    case order(behind: SessionID)
    /// All slots are in use, at least one by a session that was removed and is about to end.
    case queueLimit

    /// A sentence for people.
    public var description: String {
        switch self {
        case .queueNotRunning: "The queue is not running."
        case .transportMissing(let id): "This process has no transport named \"\(id)\"."
        case .accountBlocked(let error): "The account is blocked. \(error.message)"
        case .retry(let date): "The last attempt failed; the next one is due at \(date.formatted(.iso8601))."
        case .order(let id): "It is behind session \(id)."
        case .queueLimit: "A removed session still uses the slot, for a moment."
        }
    }
}
