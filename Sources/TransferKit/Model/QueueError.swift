/// Why a call on the queue was refused; nothing was changed.
public struct QueueError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
    /// A stable name for a program to match. The list is open.
    public struct Code: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
        /// The name, in lower camel case.
        public let rawValue: String

        /// Makes a code of a name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The name.
        public var description: String { rawValue }
    }

    /// What was wrong, for a program.
    public var code: Code

    /// What was wrong and what to do, for a person.
    public var message: String

    /// Makes an error.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}

extension QueueError.Code {
    /// Another process owns the storage folder.
    public static let storageInUse = Self(rawValue: "storageInUse")
    /// The store was written by a newer version.
    public static let storageTooNew = Self(rawValue: "storageTooNew")
    /// The store can't be opened or written.
    public static let storageUnavailable = Self(rawValue: "storageUnavailable")
    /// The store's content is damaged.
    public static let storageDamaged = Self(rawValue: "storageDamaged")
    /// Two transports have the same ID.
    public static let duplicateTransport = Self(rawValue: "duplicateTransport")
    /// An account makes no sense.
    public static let invalidAccount = Self(rawValue: "invalidAccount")
    /// There is no account of that name.
    public static let noSuchAccount = Self(rawValue: "noSuchAccount")
    /// Sessions refer to the account.
    public static let accountInUse = Self(rawValue: "accountInUse")
    /// A request makes no sense.
    public static let invalidRequest = Self(rawValue: "invalidRequest")
    /// Local files of a request are missing, unreadable or no files, or can't be written where downloads are to go.
    public static let unreadableItems = Self(rawValue: "unreadableItems")
    /// Where downloads are to go there are files already, and the request does not allow to replace them.
    public static let fileExists = Self(rawValue: "fileExists")
    /// There is no such session.
    public static let noSuchSession = Self(rawValue: "noSuchSession")
    /// An index is not in the queue; nothing is clamped.
    public static let indexOutOfRange = Self(rawValue: "indexOutOfRange")
    /// The order changed since the index was read.
    public static let staleOrder = Self(rawValue: "staleOrder")
    /// The operation makes no sense in the session's state.
    public static let invalidTransition = Self(rawValue: "invalidTransition")
    /// The session is completed; ask for it to run again.
    public static let alreadyCompleted = Self(rawValue: "alreadyCompleted")
    /// Another session with the same deduplication key is not completed.
    public static let duplicate = Self(rawValue: "duplicate")
    /// Other sessions wait for the session to end.
    public static let hasDependents = Self(rawValue: "hasDependents")
    /// Sessions would wait for each other, or in a strict queue for one behind them.
    public static let impossibleOrder = Self(rawValue: "impossibleOrder")
    /// The queue was shut down.
    public static let shutDown = Self(rawValue: "shutDown")
}
