public import Foundation
public import Logging

/// What the queue hands to a transport for one run of one file.
public struct FileAttempt: Sendable {
    /// What moves, and which way.
    public enum Payload: Hashable, Sendable {
        /// A local file, or bytes that arrive while they are sent, to the endpoint.
        case upload(UploadSource)
        /// A remote file, to this machine.
        case download(DownloadDestination)
    }

    /// Stays the same over all attempts of one life of the transfer, and is new when the file starts over.
    ///
    /// Safe as a part of a remote name: ASCII letters, digits and hyphens, at most 64 characters.
    public let transferID: String

    /// Which attempt of this life it is, from 1.
    public let number: Int

    /// Where to.
    public let endpoint: Endpoint

    /// What moves, and which way.
    public let payload: Payload

    /// The name at the endpoint, relative to its folder.
    public let remotePath: RemotePath

    /// Where an earlier attempt of this life at this endpoint got to, or nil to begin at byte 0.
    public let checkpoint: Checkpoint?

    /// What the session asks for.
    public let options: AttemptOptions

    /// Which session and item it belongs to, for hooks of the app's.
    public let origin: AttemptOrigin

    /// Reads the secrets that the endpoint names.
    public let credentials: any CredentialProvider

    /// Carries the session's and the item's IDs as metadata.
    public let logger: Logger

    /// Makes an attempt; called by the queue and by tests of transports.
    public init(
        transferID: String, number: Int = 1, endpoint: Endpoint, payload: Payload, remotePath: RemotePath, checkpoint: Checkpoint? = nil,
        options: AttemptOptions = AttemptOptions(), origin: AttemptOrigin = AttemptOrigin(), credentials: any CredentialProvider,
        logger: Logger
    ) {
        self.transferID = transferID
        self.number = number
        self.endpoint = endpoint
        self.payload = payload
        self.remotePath = remotePath
        self.checkpoint = checkpoint
        self.options = options
        self.origin = origin
        self.credentials = credentials
        self.logger = logger
    }

    /// Makes an attempt to upload; called by the queue and by tests of transports.
    public init(
        transferID: String, number: Int = 1, endpoint: Endpoint, source: UploadSource, remotePath: RemotePath,
        checkpoint: Checkpoint? = nil,
        options: AttemptOptions = AttemptOptions(), origin: AttemptOrigin = AttemptOrigin(), credentials: any CredentialProvider,
        logger: Logger
    ) {
        self.init(
            transferID: transferID, number: number, endpoint: endpoint, payload: .upload(source), remotePath: remotePath,
            checkpoint: checkpoint, options: options, origin: origin, credentials: credentials, logger: logger)
    }

    /// What to send.
    ///
    /// A transport that only uploads asks for it first, and so refuses downloads with the right error.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` if the attempt is a download.
    public var source: UploadSource {
        get throws(TransferError) {
            guard case .upload(let source) = payload else { throw unsupported("download") }
            return source
        }
    }

    /// Where to put what is received.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` if the attempt is an upload.
    public var destination: DownloadDestination {
        get throws(TransferError) {
            guard case .download(let destination) = payload else { throw unsupported("upload") }
            return destination
        }
    }

    private func unsupported(_ direction: String) -> TransferError {
        TransferError(.unsupported, .unsupported, "The transport \"\(endpoint.transport)\" can't \(direction) files.")
    }
}

/// Which session and item an attempt belongs to.
public struct AttemptOrigin: Hashable, Sendable {
    /// The session's ID.
    public var session: String
    /// The position of the item or file in its session, from 0.
    public var item: Int64
    /// The app's own value of the session, as JSON.
    public var context: Data?

    /// Makes an origin; the defaults are for tests of transports.
    public init(session: String = "", item: Int64 = 0, context: Data? = nil) {
        self.session = session
        self.item = item
        self.context = context
    }
}
