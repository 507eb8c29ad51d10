/// A transport that can remove incomplete remote content, such as the content of a cancelled upload.
public protocol PartialDiscarding: Transport {
    /// Removes the incomplete remote content to which a checkpoint refers. Content that is already gone counts as removed.
    ///
    /// The queue calls this method on a separate task, which does not count towards the limits for running sessions. If the method throws
    /// an error, the queue calls it again later, for up to 7 days.
    ///
    /// - Throws: A ``TransferError``. The class ``FailureClass/unsupported`` means that a retry is useless.
    func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws
}

/// A transport that can validate an endpoint without a connection.
public protocol EndpointValidating: Transport {
    /// Checks an endpoint's address, settings and kinds of credentials, as an attempt would before it connects.
    ///
    /// The queue calls this method when an account is saved, on the caller's executor. A misspelt setting therefore fails the save instead
    /// of a later session.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/permanent`` or ``FailureClass/unsupported``.
    func validate(_ endpoint: Endpoint) throws(TransferError)
}

/// A transport that can validate a session's options for an endpoint without a connection.
public protocol SessionValidating: Transport {
    /// Checks a session's options, as an attempt would before it connects: metadata, headers and settings.
    ///
    /// The queue calls this method before it stores a session, and before the session's options or items change, on any thread. Invalid
    /// options therefore fail the caller's call instead of the session. For an item with its own URL, the options contain the item's
    /// ``AttemptOptions/uploadURL`` or ``AttemptOptions/creationURL``.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` if another endpoint of the account could support the option. If the
    ///   files would fail at any endpoint, the class is ``FailureClass/permanent``, and the queue rejects the session. The message must name the
    ///   option and the remedy, because the queue shows it unchanged.
    func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError)
}

/// A transport that can send a form: text fields and several files in one request.
///
/// The queue passes the payload ``FileAttempt/Payload/form(_:)`` to ``Transport/perform(_:reporting:)`` only if the transport conforms to
/// this protocol. The queue rejects a form if no endpoint of the session's account can receive forms. An attempt for a form reports positions
/// in the sequence of all files, without the text fields and the headers of the parts. The size in the receipt is ``UploadForm/size``. If the server
/// creates a record, such as a database row, for each form, call ``AttemptReporter/reportRecord(mayRepeat:)``.
public protocol FormUploading: Transport {
    /// Checks, without a connection, that an endpoint can receive forms, and that a session's options are valid for forms.
    ///
    /// The queue calls this method on the caller's executor, before it stores a form, and in a separate task, before each attempt.
    ///
    /// - Parameters:
    ///   - options: The session's options.
    ///   - endpoint: An endpoint of the session's account.
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` if another endpoint of the account could receive the form,
    ///   otherwise of the class ``FailureClass/permanent``. The message must name the remedy, because the queue shows it unchanged.
    func validateForms(with options: AttemptOptions, at endpoint: Endpoint) throws(TransferError)
}

/// A transport whose endpoints store files under their remote names, so files with the same name can clash.
///
/// The queue assumes that the endpoints of other transports keep all files, even with the same name.
public protocol FileNaming: Transport {
    /// Returns what happens if two files with the same remote name are sent to an endpoint.
    ///
    /// The queue calls this method on any thread, before it stores a session, adds items to a session, or changes the session's account or
    /// options. The queue does not accept two such files if an endpoint that can perform the session would replace or skip one of them, or if the
    /// first endpoint that can perform the session would reject the second file. If names in a session clash, the queue also calls this method in a
    /// separate task, before each attempt.
    ///
    /// - Parameters:
    ///   - options: The session's options.
    ///   - endpoint: An endpoint of the session's account.
    func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash
}

/// What happens if two files with the same remote name are sent to an endpoint.
public enum NameClash: Hashable, Sendable {
    /// The endpoint keeps both files.
    case bothKept
    /// The second file is rejected, and the first one stays.
    case refused
    /// The second file counts as sent, and the first one stays.
    case skipped
    /// One file can replace the other.
    case replaced
}

/// A transport that can check an endpoint without transferring a file.
public protocol EndpointChecking: Transport {
    /// Connects to an endpoint and reads its capabilities.
    ///
    /// - Throws: A ``TransferError`` of the class that a failed attempt would have.
    func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport
}

/// The properties of a server.
public struct EndpointReport: Hashable, Sendable {
    /// The negotiated protocol version; nil if unknown.
    public var version: String?

    /// Other protocols or versions that the server supports, and that the transport uses only if the endpoint's settings select them; empty if the
    /// server supports no others, or if the others are unknown.
    public var otherVersions: [String]

    /// The server's features, with the server's names for them.
    public var features: [String]

    /// The largest accepted file, in bytes; nil if unreported.
    public var maximumSize: Int64?

    /// Other limits by their protocol names, for example `packet`, in bytes; empty if unreported.
    public var limits: [String: Int64]

    /// The fingerprint of the server's verified host key, such as `SHA256:…`; nil if the protocol has no host keys.
    public var hostKeyFingerprint: String?

    /// The round-trip time of one request.
    public var latency: Duration

    /// Creates a report.
    public init(
        version: String? = nil, otherVersions: [String] = [], features: [String] = [], maximumSize: Int64? = nil,
        limits: [String: Int64] = [:],
        hostKeyFingerprint: String? = nil, latency: Duration
    ) {
        self.version = version
        self.otherVersions = otherVersions
        self.features = features
        self.maximumSize = maximumSize
        self.limits = limits
        self.hostKeyFingerprint = hostKeyFingerprint
        self.latency = latency
    }
}
