public import Foundation

/// The error of an attempt, an item or a session.
///
/// The description consists of one or more sentences, and never contains a secret: no header values, no URL queries.
public struct TransferError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
    /// A stable name of the error, for programs. The list is not exhaustive: transports can define their own codes.
    public struct Code: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
        /// The name as it is stored and shown, in lower camel case.
        public let rawValue: String

        /// Creates a code from a name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The name.
        public var description: String { rawValue }
    }

    /// The class, which largely determines the reaction of the queue.
    public var failureClass: FailureClass

    /// The stable name of the error, for programs.
    public var code: Code

    /// A human-readable message: the problem and how to fix it, in one or more sentences.
    public var message: String

    /// The error text of the library or system, or nil.
    public var cause: String?

    /// The delay that the server asked for, beginning with the server's response (`Retry-After`, RFC 9110, section 10.2.3); nil for none.
    public var retryAfter: Duration?

    /// Creates an error.
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

extension TransferError: LocalizedError {
    /// The same as ``description``, so that `localizedDescription` has the message.
    public var errorDescription: String? { description }
}

extension TransferError.Code {
    /// An endpoint's address is invalid.
    public static let invalidEndpoint = Self(rawValue: "invalidEndpoint")
    /// A file's upload URL or creation URL is invalid, or not trusted; see ``AttemptOptions/uploadURL`` and ``AttemptOptions/creationURL``.
    public static let invalidUploadURL = Self(rawValue: "invalidUploadURL")
    /// A name is invalid, or would lead outside of its folder.
    public static let unsafeName = Self(rawValue: "unsafeName")
    /// The connection was refused, or there is no route. See <doc:/transferq/Troubleshooting>.
    public static let connectionRefused = Self(rawValue: "connectionRefused")
    /// The host name can't be resolved. See <doc:/transferq/Troubleshooting>.
    public static let hostNotFound = Self(rawValue: "hostNotFound")
    /// The connection was lost. See <doc:/transferq/Troubleshooting>.
    public static let connectionLost = Self(rawValue: "connectionLost")
    /// A time limit was exceeded. See <doc:/transferq/Troubleshooting>.
    public static let timedOut = Self(rawValue: "timedOut")
    /// The session did not end within its deadline.
    public static let deadlineExceeded = Self(rawValue: "deadlineExceeded")
    /// The attempt made no progress within the stall timeout or the response timeout. See <doc:/transferq/Troubleshooting>.
    public static let stalled = Self(rawValue: "stalled")
    /// The server's identity can't be verified. See <doc:/transferq/Troubleshooting>.
    public static let serverNotTrusted = Self(rawValue: "serverNotTrusted")
    /// The server or a proxy rejected the account's credentials, or requires credentials that the account does not have.
    /// See <doc:/transferq/Troubleshooting>.
    public static let credentialsRejected = Self(rawValue: "credentialsRejected")
    /// The server does not allow the request, although it accepts the credentials, or the request carries none.
    /// See <doc:/transferq/Troubleshooting>.
    public static let forbidden = Self(rawValue: "forbidden")
    /// A secret or a key can't be read on this machine. See <doc:/transferq/Troubleshooting>.
    public static let credentialsUnavailable = Self(rawValue: "credentialsUnavailable")
    /// The server rejected the request. See <doc:/transferq/Troubleshooting>.
    public static let rejected = Self(rawValue: "rejected")
    /// The server failed or is busy. See <doc:/transferq/Troubleshooting>.
    public static let serverError = Self(rawValue: "serverError")
    /// The server, or a proxy in front of it, reports that the service is not available: HTTP 502, 503 and 504, or a new connection that was
    /// accepted and then closed without a response. Counts as a failure of the endpoint, unless the endpoint serves other files at the same time.
    /// See <doc:/transferq/Troubleshooting>.
    public static let serverUnavailable = Self(rawValue: "serverUnavailable")
    /// The server does not use the protocol of this transport. See <doc:/transferq/Troubleshooting>.
    public static let notThisProtocol = Self(rawValue: "notThisProtocol")
    /// The server uses another version of the protocol.
    public static let unsupportedVersion = Self(rawValue: "unsupportedVersion")
    /// The server's response violates the protocol.
    public static let invalidResponse = Self(rawValue: "invalidResponse")
    /// The content of an earlier attempt is gone, or does not match the file: on the server, or in the part file of a download.
    public static let uploadGone = Self(rawValue: "uploadGone")
    /// The file exceeds a size limit of the server, a file system or the queue. See <doc:/transferq/Troubleshooting>.
    public static let tooLarge = Self(rawValue: "tooLarge")
    /// The server is out of space, or the account's quota is used up. See <doc:/transferq/Troubleshooting>.
    public static let remoteFull = Self(rawValue: "remoteFull")
    /// This machine is out of space. See <doc:/transferq/Troubleshooting>.
    public static let diskFull = Self(rawValue: "diskFull")
    /// A local file or folder does not exist. See <doc:/transferq/Troubleshooting>.
    public static let noSuchFile = Self(rawValue: "noSuchFile")
    /// A local file can't be read. See <doc:/transferq/Troubleshooting>.
    public static let notReadable = Self(rawValue: "notReadable")
    /// A local file or folder can't be created or written.
    public static let notWritable = Self(rawValue: "notWritable")
    /// A local file exists that the download must not replace. See <doc:/transferq/Troubleshooting>.
    public static let fileExists = Self(rawValue: "fileExists")
    /// The remote file or folder does not exist. See <doc:/transferq/Troubleshooting>.
    public static let noSuchRemoteFile = Self(rawValue: "noSuchRemoteFile")
    /// The remote name refers to a folder, not to a file.
    public static let isFolder = Self(rawValue: "isFolder")
    /// The producer of a stream failed or exited, or the stream has a different length than declared. See <doc:/transferq/Troubleshooting>.
    public static let producerGone = Self(rawValue: "producerGone")
    /// A local path or a listed remote entry is not a regular file.
    public static let notARegularFile = Self(rawValue: "notARegularFile")
    /// The content does not have the expected checksum, or the expected checksum is invalid. See <doc:/transferq/Troubleshooting>.
    public static let checksumMismatch = Self(rawValue: "checksumMismatch")
    /// The local file changed after the queue recorded its identity. See <doc:/transferq/Troubleshooting>.
    public static let sourceChanged = Self(rawValue: "sourceChanged")
    /// The transport or the server does not support an option, a direction, or another requested feature.
    public static let unsupported = Self(rawValue: "unsupported")
    /// The session was cancelled or removed.
    public static let cancelled = Self(rawValue: "cancelled")
    /// The server may have received the file, but its response is lost, and the transport has no way to find out whether the server has the file. The
    /// queue does not send the file again; an app can retry the session.
    public static let outcomeUnknown = Self(rawValue: "outcomeUnknown")
    /// At least one of the session's files failed; each failed file has its own error. See <doc:/transferq/Troubleshooting>.
    public static let itemsFailed = Self(rawValue: "itemsFailed")
    /// An unexpected error, for example a bug in a transport.
    public static let internalFailure = Self(rawValue: "internalFailure")
}

extension TransferError {
    /// The error for an invalid address or setting of an endpoint.
    package static func invalidEndpoint(_ message: String) -> TransferError {
        TransferError(.permanent, .invalidEndpoint, message)
    }

    static func unsafeName(_ message: String) -> TransferError {
        TransferError(.permanent, .unsafeName, message)
    }
}
