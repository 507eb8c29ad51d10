public import Foundation

/// An error of a call on the queue.
///
/// The failed call changed nothing, with two exceptions. A call for more than 10,000 sessions, or the removal of more than 5,000 sessions, may
/// already have changed some of them. After the code `ownerLost`, it is unknown whether the process that owned the queue performed the call.
public struct QueueError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
    /// A stable name for the reason, for programs. Later versions can add codes.
    public struct Code: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
        /// The name, in lower camel case.
        public let rawValue: String

        /// Creates a code from a name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The name.
        public var description: String { rawValue }
    }

    /// The reason, for programs.
    public var code: Code

    /// A human-readable message: the reason and what to do.
    public var message: String

    /// Creates an error.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}

extension QueueError: LocalizedError {
    /// The message, so that `localizedDescription` is a sentence.
    public var errorDescription: String? { message }
}

extension QueueError.Code {
    /// Another process, or another queue in this process, owns the storage folder. See <doc:/transferq/Troubleshooting>.
    public static let storageInUse = Self(rawValue: "storageInUse")
    /// A newer version wrote the database. See <doc:/transferq/Troubleshooting>.
    public static let storageTooNew = Self(rawValue: "storageTooNew")
    /// The database can't be opened, read or written. See <doc:/transferq/Troubleshooting>.
    public static let storageUnavailable = Self(rawValue: "storageUnavailable")
    /// The database is damaged. See <doc:/transferq/Troubleshooting>.
    public static let storageDamaged = Self(rawValue: "storageDamaged")
    /// Two transports have the same ID, or a transport has a reserved ID.
    public static let duplicateTransport = Self(rawValue: "duplicateTransport")
    /// An account is not valid.
    public static let invalidAccount = Self(rawValue: "invalidAccount")
    /// No account has that name.
    public static let noSuchAccount = Self(rawValue: "noSuchAccount")
    /// Sessions refer to the account.
    public static let accountInUse = Self(rawValue: "accountInUse")
    /// A request is not valid.
    public static let invalidRequest = Self(rawValue: "invalidRequest")
    /// Local sources of a request are missing, unreadable, or neither files nor folders; or the download folder is missing or not writable.
    public static let unreadableItems = Self(rawValue: "unreadableItems")
    /// Local files exist at the destinations of downloads, and the request does not allow replacing them.
    public static let fileExists = Self(rawValue: "fileExists")
    /// There is no such session.
    public static let noSuchSession = Self(rawValue: "noSuchSession")
    /// The index of a session or of a destination is outside the queue.
    public static let indexOutOfRange = Self(rawValue: "indexOutOfRange")
    /// The order has changed since the index was read. See <doc:/transferq/Troubleshooting>.
    public static let staleOrder = Self(rawValue: "staleOrder")
    /// The operation is not valid in the session's state. See <doc:/transferq/Troubleshooting>.
    public static let invalidTransition = Self(rawValue: "invalidTransition")
    /// The session is completed. To transfer it again, set `again`; see ``ControllableQueue/run(_:again:)``.
    public static let alreadyCompleted = Self(rawValue: "alreadyCompleted")
    /// Another session that is not completed has the same deduplication key. See <doc:/transferq/Troubleshooting>.
    public static let duplicate = Self(rawValue: "duplicate")
    /// Other sessions wait for the session to end. See <doc:/transferq/Troubleshooting>.
    public static let hasDependents = Self(rawValue: "hasDependents")
    /// Sessions would wait for each other, or, in a strict queue, a session would wait for a later session.
    public static let impossibleOrder = Self(rawValue: "impossibleOrder")
    /// ``QueueConfiguration/progressObserver`` rejected a change of a file's progress, so the session's run ends.
    package static let progressRefused = Self(rawValue: "progressRefused")
    /// The queue was shut down.
    public static let shutDown = Self(rawValue: "shutDown")
}
