public import Logging

/// A transport that can list remote folders, so that a session can download a whole folder.
public protocol FolderListing: Transport {
    /// Lists one folder, without the content of its subfolders.
    ///
    /// The queue calls this method on a separate task, for one folder of a session at a time. Pass on names exactly as the server sends
    /// them, including `.` and `..`. The queue checks each name before using it.
    ///
    /// **Memory.** A folder can have a million names. Pass entries on in groups of hundreds or thousands, and request more entries only after
    /// `receive` has returned. For an empty folder, don't call `receive`.
    ///
    /// **Kinds.** Report a link as a link, not as its target, unless ``ListingAttempt/resolvesLinks`` is set.
    ///
    /// **Errors.** The rules of ``Transport/perform(_:reporting:)`` apply. Rethrow errors of `receive` unchanged. If the folder does not
    /// exist, or is a file, throw an error of the class ``FailureClass/permanent`` with the code ``TransferError/Code/noSuchRemoteFile``.
    /// After an error, the queue ignores the received entries, and either retries the listing or fails the folder.
    ///
    /// If an attempt for a file finds a folder, throw an error of the class ``FailureClass/permanent`` with the code
    /// ``TransferError/Code/isFolder``. The queue then lists the folder, unless the session expects a checksum or the name is from a listing.
    ///
    /// **Cancellation.** When the task is cancelled, stop within 100 ms and throw `CancellationError`. The queue also cancels a listing that passes
    /// on no entries during the session's stall timeout.
    ///
    /// - Parameters:
    ///   - attempt: The folder to list, with its endpoint and options.
    ///   - receive: Accepts entries in any order, one call at a time. If it throws, the listing ends.
    func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws

    /// Checks, without a connection, whether an endpoint can list folders. By default, all endpoints of the transport can.
    ///
    /// The queue calls this method on its executors when it chooses an endpoint for a folder, or for a file in a listed folder.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported``. The message must name the remedy, because the queue shows it
    ///   unchanged.
    func validateListing(at endpoint: Endpoint) throws(TransferError)
}

extension FolderListing {
    /// Accepts every endpoint.
    public func validateListing(at endpoint: Endpoint) throws(TransferError) {}
}

/// One attempt to list one folder: the request that the queue passes to a transport.
public struct ListingAttempt: Sendable {
    /// The endpoint of the folder.
    public let endpoint: Endpoint

    /// The folder's remote name, relative to the folder of the endpoint; ``RemotePath/endpointFolder`` to list the endpoint's folder
    /// itself.
    public let remotePath: RemotePath

    /// Whether to list a symbolic link to a regular file as a file. Other links are listed as links.
    public let resolvesLinks: Bool

    /// The session's options.
    public let options: AttemptOptions

    /// The session of the folder. A transport passes it to functions of the app, such as a function that adds headers.
    /// ``AttemptOrigin/item`` is always 0.
    public let origin: AttemptOrigin

    /// Reads the endpoint's secrets.
    public let credentials: any CredentialProvider

    /// The logger. Its metadata identifies the session and the account.
    public let logger: Logger

    /// Creates an attempt. For the queue and tests of transports.
    public init(
        endpoint: Endpoint, remotePath: RemotePath, resolvesLinks: Bool = false, options: AttemptOptions = AttemptOptions(),
        origin: AttemptOrigin = AttemptOrigin(), credentials: any CredentialProvider, logger: Logger
    ) {
        self.endpoint = endpoint
        self.remotePath = remotePath
        self.resolvesLinks = resolvesLinks
        self.options = options
        self.origin = origin
        self.credentials = credentials
        self.logger = logger
    }
}

/// An entry of a remote folder.
public struct RemoteEntry: Hashable, Sendable {
    /// The kind of an entry.
    public enum Kind: Hashable, Sendable {
        /// A regular file, with its size in bytes, or nil if unreported. The queue only displays this size; the download does not rely on
        /// it.
        case file(size: Int64?)
        /// A folder.
        case folder
        /// A symbolic link to any target.
        case symbolicLink
        /// A device, a socket, or another entry that can't be downloaded.
        case other
    }

    /// The name within the folder: unchecked bytes from the server, which can be unsafe in a path.
    public var name: [UInt8]

    /// The kind of the entry.
    public var kind: Kind

    /// Creates an entry.
    public init(name: [UInt8], kind: Kind) {
        self.name = name
        self.kind = kind
    }
}
