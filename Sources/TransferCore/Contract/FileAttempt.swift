public import Foundation
public import Logging

/// One attempt to transfer one file: the request that the queue passes to a transport.
public struct FileAttempt: Sendable {
    /// The content and its direction.
    public enum Payload: Hashable, Sendable {
        /// Upload a local file or a growing source to the endpoint.
        case upload(UploadSource)
        /// Upload text fields and files in one request. Only for transports that conform to ``FormUploading``.
        case form(UploadForm)
        /// Download a remote file to this machine.
        case download(DownloadDestination)
    }

    /// The ID of the file's transfer. All attempts for the file have the same ID until the file restarts at byte 0 and gets a new ID.
    ///
    /// At most 64 ASCII letters, digits and hyphens, so it can be part of a remote name.
    public let transferID: String

    /// The ID for the name of a part file, with the same characters as ``transferID``. Differs from ``transferID`` if another queue has worked on the
    /// transfer, and may still have its part file open. In this case, a transport must not write into the part file of an earlier checkpoint, but may
    /// copy the bytes of that part file.
    public var partID: String

    /// The number of the attempt, counted from 1. The count begins again when the file restarts, when its session is retried, run again or
    /// assigned to another account, and in a new process.
    public let number: Int

    /// Whether the file restarted at byte 0, possibly in an earlier process, and no attempt of this transport has saved a checkpoint since then.
    ///
    /// If so, the upload at ``AttemptOptions/uploadURL`` can already contain bytes of an earlier transfer, possibly of other content.
    public let isRestarted: Bool

    /// The endpoint to transfer to or from.
    public let endpoint: Endpoint

    /// The content and its direction.
    public let payload: Payload

    /// The remote name, relative to the folder of the endpoint.
    public let remotePath: RemotePath

    /// The last checkpoint of this transfer at this endpoint; nil to start at byte 0.
    public let checkpoint: Checkpoint?

    /// The session's options.
    public let options: AttemptOptions

    /// The session and item of the file. A transport passes them to functions of the app, such as a function that adds headers.
    public let origin: AttemptOrigin

    /// Reads the endpoint's secrets.
    public let credentials: any CredentialProvider

    /// The logger. Its metadata identifies the session, the account, the item, the endpoint and the attempt.
    public let logger: Logger

    /// Creates an attempt. For the queue and tests of transports.
    public init(
        transferID: String, number: Int = 1, isRestarted: Bool = false, endpoint: Endpoint, payload: Payload, remotePath: RemotePath,
        checkpoint: Checkpoint? = nil,
        options: AttemptOptions = AttemptOptions(), origin: AttemptOrigin = AttemptOrigin(), credentials: any CredentialProvider,
        logger: Logger
    ) {
        self.transferID = transferID
        partID = transferID
        self.number = number
        self.isRestarted = isRestarted
        self.endpoint = endpoint
        self.payload = payload
        self.remotePath = remotePath
        self.checkpoint = checkpoint
        self.options = options
        self.origin = origin
        self.credentials = credentials
        self.logger = logger
    }

    /// Creates an attempt for an upload. For the queue and tests of transports.
    public init(
        transferID: String, number: Int = 1, isRestarted: Bool = false, endpoint: Endpoint, source: UploadSource, remotePath: RemotePath,
        checkpoint: Checkpoint? = nil,
        options: AttemptOptions = AttemptOptions(), origin: AttemptOrigin = AttemptOrigin(), credentials: any CredentialProvider,
        logger: Logger
    ) {
        self.init(
            transferID: transferID, number: number, isRestarted: isRestarted, endpoint: endpoint, payload: .upload(source),
            remotePath: remotePath,
            checkpoint: checkpoint, options: options, origin: origin, credentials: credentials, logger: logger)
    }

    /// The source of an upload.
    ///
    /// A transport that supports only uploads should read this property first, so that a download fails with the correct error.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` if the attempt is a download, or the upload of a form.
    public var source: UploadSource {
        get throws(TransferError) {
            switch payload {
            case .upload(let source): return source
            case .form: throw unsupported("send forms")
            case .download: throw unsupported("download files")
            }
        }
    }

    /// The destination of a download.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` if the attempt is an upload.
    public var destination: DownloadDestination {
        get throws(TransferError) {
            guard case .download(let destination) = payload else { throw unsupported("upload files") }
            return destination
        }
    }

    private func unsupported(_ action: String) -> TransferError {
        TransferError(.unsupported, .unsupported, "The transport \"\(endpoint.transport)\" can't \(action).")
    }
}

/// The session, item and account of an attempt.
public struct AttemptOrigin: Hashable, Sendable {
    /// The session's ID.
    public var session: String
    /// The position of the item or file in its session, from 0.
    public var item: Int64
    /// The app's context for the session, as JSON; nil if the session has no context.
    public var context: Data?
    /// The name of the account.
    public var account: String

    /// Creates an origin. The defaults are for tests of transports.
    public init(session: String = "", item: Int64 = 0, context: Data? = nil, account: String = "") {
        self.session = session
        self.item = item
        self.context = context
        self.account = account
    }
}
