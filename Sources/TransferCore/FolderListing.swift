public import Logging

/// A transport that can list the folders of its endpoints, so that a session can download a folder with all that is in it.
public protocol FolderListing: Transport {
    /// Lists one folder, and none of those in it.
    ///
    /// The queue calls it from a task of its own, for one folder after the other, and goes on with the next one itself. It looks at each name
    /// before it uses it, so names are handed over as the server tells them; `.` and `..`, which some servers list, may be among them.
    ///
    /// **Memory.** A folder may have a million names: hand them over in pieces of some hundred or thousand, and ask for the next ones when
    /// `receive` has returned. A folder with nothing in it needs no call.
    ///
    /// **Kinds.** Tell what an entry is itself, not what a link leads to, unless ``ListingAttempt/resolvesLinks`` is set.
    ///
    /// **Errors.** As of ``Transport/perform(_:reporting:)``, and those that `receive` throws, as they are. A folder that does not exist is an
    /// error of the class ``FailureClass/permanent`` with the code ``TransferError/Code/noSuchRemoteFile``; so is a file in its place. What was
    /// handed over before an error is forgotten: the queue lists the folder anew, or tells that it could not be listed.
    ///
    /// An attempt to receive a file that turns out to be a folder throws the class ``FailureClass/permanent`` with the code
    /// ``TransferError/Code/isFolder``: the queue then lists it.
    ///
    /// **Cancellation.** When the task is cancelled, stop within 100 ms and throw `CancellationError`. The queue also cancels when nothing was
    /// handed over for the session's stall time-out.
    ///
    /// - Parameter receive: Takes entries, in any order; one call at a time. Throws when the listing is to end.
    func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws
}

/// What the queue hands to a transport for one listing of one folder.
public struct ListingAttempt: Sendable {
    /// Where the folder is.
    public let endpoint: Endpoint

    /// The folder's name at the endpoint, relative to its own folder.
    public let remotePath: RemotePath

    /// Whether a symbolic link to a regular file is listed as that file. One that leads to anything else, or nowhere, is a link all the same.
    public let resolvesLinks: Bool

    /// What the session asks for.
    public let options: AttemptOptions

    /// Reads the secrets that the endpoint names.
    public let credentials: any CredentialProvider

    /// Carries the session's ID as metadata.
    public let logger: Logger

    /// Makes an attempt; called by the queue and by tests of transports.
    public init(
        endpoint: Endpoint, remotePath: RemotePath, resolvesLinks: Bool = false, options: AttemptOptions = AttemptOptions(),
        credentials: any CredentialProvider, logger: Logger
    ) {
        self.endpoint = endpoint
        self.remotePath = remotePath
        self.resolvesLinks = resolvesLinks
        self.options = options
        self.credentials = credentials
        self.logger = logger
    }
}

/// Something in a remote folder.
public struct RemoteEntry: Hashable, Sendable {
    /// What it is.
    public enum Kind: Hashable, Sendable {
        /// A regular file; the size in bytes is nil if the server does not tell it. It is shown until the file is received, and not relied on.
        case file(size: Int64?)
        /// A folder.
        case folder
        /// A symbolic link, wherever it leads.
        case symbolicLink
        /// A device, a socket, or whatever else can't be received.
        case other
    }

    /// The name in its folder, as the server tells it: bytes, and not checked for what they could do to a path.
    public var name: [UInt8]

    /// What it is.
    public var kind: Kind

    /// Makes an entry.
    public init(name: [UInt8], kind: Kind) {
        self.name = name
        self.kind = kind
    }
}
