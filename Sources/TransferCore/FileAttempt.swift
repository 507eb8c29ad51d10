public import Logging
public import SystemPackage

/// What the queue hands to a transport for one run of one file.
public struct FileAttempt: Sendable {
    /// Stays the same over all attempts of one life of the transfer, and is new when the file starts over.
    ///
    /// Safe as a part of a remote name: ASCII letters, digits and hyphens, at most 64 characters.
    public let transferID: String

    /// Which attempt of this life it is, from 1.
    public let number: Int

    /// Where to.
    public let endpoint: Endpoint

    /// What to send.
    public let source: UploadSource

    /// The name at the endpoint, relative to its folder.
    public let remotePath: RemotePath

    /// Where an earlier attempt of this life at this endpoint got to, or nil to begin at byte 0.
    public let checkpoint: Checkpoint?

    /// What the session asks for.
    public let options: AttemptOptions

    /// Reads the secrets that the endpoint names.
    public let credentials: any CredentialProvider

    /// Carries the session's and the item's IDs as metadata.
    public let logger: Logger

    /// Makes an attempt; called by the queue and by tests of transports.
    public init(
        transferID: String, number: Int = 1, endpoint: Endpoint, source: UploadSource, remotePath: RemotePath,
        checkpoint: Checkpoint? = nil,
        options: AttemptOptions = AttemptOptions(), credentials: any CredentialProvider, logger: Logger
    ) {
        self.transferID = transferID
        self.number = number
        self.endpoint = endpoint
        self.source = source
        self.remotePath = remotePath
        self.checkpoint = checkpoint
        self.options = options
        self.credentials = credentials
        self.logger = logger
    }
}

/// A local file to send, and what it was when the queue looked.
public struct UploadSource: Hashable, Sendable {
    /// The file.
    public let path: FilePath

    /// What the file must still be when it is opened and after its last byte; a transport that finds it different throws an error of the
    /// class ``FailureClass/sourceChanged``.
    public let identity: SourceIdentity

    /// Makes a source.
    public init(path: FilePath, identity: SourceIdentity) {
        self.path = path
        self.identity = identity
    }

    /// The size in bytes.
    public var size: Int64 { identity.size }
}

/// What a session asks of a transport.
public struct AttemptOptions: Hashable, Sendable {
    /// Names and values that the server is told with the file, in a form that the transport decides.
    public var metadata: [String: String]

    /// Makes options.
    public init(metadata: [String: String] = [:]) {
        self.metadata = metadata
    }
}
