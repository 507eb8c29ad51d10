/// Why an attempt, an item or a session failed.
///
/// The description reads as a sentence and never holds a secret: no header values, no URL queries.
public struct TransferError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
    /// A stable name for a program to match. The list is open: transports define their own.
    public struct Code: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
        /// The name as it is stored and shown, in lower camel case.
        public let rawValue: String

        /// Makes a code of a name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The name.
        public var description: String { rawValue }
    }

    /// What the queue does about it.
    public var failureClass: FailureClass

    /// What happened, for a program.
    public var code: Code

    /// What happened and what to do, for a person; a sentence or more.
    public var message: String

    /// The underlying library's or system's own words, when there are any.
    public var cause: String?

    /// How long the server asks to be left alone, from when it answered (`Retry-After`, RFC 9110, section 10.2.3).
    public var retryAfter: Duration?

    /// Makes an error.
    public init(_ failureClass: FailureClass, _ code: Code, _ message: String, cause: String? = nil, retryAfter: Duration? = nil) {
        self.failureClass = failureClass
        self.code = code
        self.message = message
        self.cause = cause
        self.retryAfter = retryAfter
    }

    /// The message, followed by the cause in parentheses.
    public var description: String {
        cause.map { "\(message) (\($0))" } ?? message
    }
}

extension TransferError.Code {
    /// An endpoint's address makes no sense.
    public static let invalidEndpoint = Self(rawValue: "invalidEndpoint")
    /// A file's own upload URL makes no sense; see ``AttemptOptions/uploadURL``.
    public static let invalidUploadURL = Self(rawValue: "invalidUploadURL")
    /// A name would leave its folder or can't be a name.
    public static let unsafeName = Self(rawValue: "unsafeName")
    /// The connection was refused, or there is no route.
    public static let connectionRefused = Self(rawValue: "connectionRefused")
    /// The host's name can't be resolved.
    public static let hostNotFound = Self(rawValue: "hostNotFound")
    /// The connection broke.
    public static let connectionLost = Self(rawValue: "connectionLost")
    /// Something took longer than allowed.
    public static let timedOut = Self(rawValue: "timedOut")
    /// No byte moved for the stall time-out.
    public static let stalled = Self(rawValue: "stalled")
    /// The server's identity can't be verified.
    public static let serverNotTrusted = Self(rawValue: "serverNotTrusted")
    /// A secret can't be read, or the server refuses it.
    public static let credentialsRejected = Self(rawValue: "credentialsRejected")
    /// The server knows who we are, and does not allow this.
    public static let forbidden = Self(rawValue: "forbidden")
    /// A referenced secret can't be read on this machine.
    public static let credentialsUnavailable = Self(rawValue: "credentialsUnavailable")
    /// The server refused the request for good.
    public static let rejected = Self(rawValue: "rejected")
    /// The server failed or is busy.
    public static let serverError = Self(rawValue: "serverError")
    /// The server, or a proxy in front of it, says that the service is not available now: HTTP 502, 503 and 504. An answer about the endpoint,
    /// unless the endpoint serves other files at the same time.
    public static let serverUnavailable = Self(rawValue: "serverUnavailable")
    /// The server is not one that this transport speaks to.
    public static let notThisProtocol = Self(rawValue: "notThisProtocol")
    /// The server speaks another version of the protocol.
    public static let unsupportedVersion = Self(rawValue: "unsupportedVersion")
    /// The server's answer breaks the protocol.
    public static let badAnswer = Self(rawValue: "badAnswer")
    /// The server no longer has what was uploaded so far.
    public static let uploadGone = Self(rawValue: "uploadGone")
    /// The file is larger than the server takes.
    public static let tooLarge = Self(rawValue: "tooLarge")
    /// The server is out of space for this account.
    public static let remoteFull = Self(rawValue: "remoteFull")
    /// This machine is out of space.
    public static let diskFull = Self(rawValue: "diskFull")
    /// A local file does not exist.
    public static let noSuchFile = Self(rawValue: "noSuchFile")
    /// A local file can't be read.
    public static let notReadable = Self(rawValue: "notReadable")
    /// A local file or folder can't be made or written.
    public static let notWritable = Self(rawValue: "notWritable")
    /// There is a local file already that a download may not replace.
    public static let fileExists = Self(rawValue: "fileExists")
    /// There is no such file at the server.
    public static let noSuchRemoteFile = Self(rawValue: "noSuchRemoteFile")
    /// What was to be received as a file is a folder at the server.
    public static let isFolder = Self(rawValue: "isFolder")
    /// The producer of a stream failed, or ended with the process that it was part of.
    public static let producerGone = Self(rawValue: "producerGone")
    /// A local path is not a regular file.
    public static let notARegularFile = Self(rawValue: "notARegularFile")
    /// What arrived has another checksum than what was sent.
    public static let checksumMismatch = Self(rawValue: "checksumMismatch")
    /// The local file changed while or since it was sent.
    public static let sourceChanged = Self(rawValue: "sourceChanged")
    /// An option or a direction that the transport does not have.
    public static let unsupported = Self(rawValue: "unsupported")
    /// The session was cancelled.
    public static let cancelled = Self(rawValue: "cancelled")
    /// Some of the session's files failed; each has its own error.
    public static let itemsFailed = Self(rawValue: "itemsFailed")
    /// A defect: something happened that should not be possible.
    public static let internalFailure = Self(rawValue: "internalFailure")
}

extension TransferError {
    static func invalidEndpoint(_ message: String) -> TransferError {
        TransferError(.permanent, .invalidEndpoint, message)
    }

    static func unsafeName(_ message: String) -> TransferError {
        TransferError(.permanent, .unsafeName, message)
    }
}
