public import Foundation
public import SystemPackage
public import TransferCore

/// One thing that a session moves, and the name that it gets: to upload, a file, a folder with all that is in it, bytes from memory, or bytes
/// that are produced meanwhile; to download, a remote file, or a remote folder with all that is in it.
public struct TransferItem: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        case path(FilePath)
        case data(Data)
        case stream(StreamProducer)
        /// To be downloaded to this name; nil for the remote one's last component.
        case remote(FilePath?)
        /// To be downloaded with all that is in it, as ``remote(_:)``.
        case remoteFolder(FilePath?)
    }

    package var content: Content

    /// The remote name below the endpoint's folder; nil for the source's own last component. Bytes from memory, streams and downloads have a name always.
    public var destination: RemotePath?

    /// What becomes of symbolic links, if the item is a folder.
    public var symbolicLinks = SymbolicLinkPolicy.follow

    /// Where the file already has a place at the server, for transports that would otherwise make one; nil for none. Not for folders.
    ///
    /// Who has it may write there: it is kept in the store until the session is removed, and never in a log, an error, an event or a status.
    public var uploadURL: String? {
        get { uploadPlace?.text }
        set { uploadPlace = newValue.map(Capability.init) }
    }

    package var uploadPlace: Capability?

    /// The local file or folder to send; nil for all else. A relative path is taken from the working directory at the time of the enqueueing.
    public var source: FilePath? {
        switch content {
        case .path(let path): path
        case .data, .stream, .remote, .remoteFolder: nil
        }
    }

    /// Makes an item of a file or a folder. Which of both it is is found out when it is enqueued.
    ///
    /// A folder is read when its session first runs, and keeps its structure below its own name or the one given. What is in it by then is
    /// sent, in the order of the names' bytes where a folder has at most 16,384 entries. Folders without files leave nothing at the other end.
    /// Sockets, FIFOs and devices are left out, as ``ItemState/skipped`` items; a folder inside that can't be read is an item that fails, and
    /// the others go on.
    ///
    /// - Parameters:
    ///   - source: The file or folder.
    ///   - destination: The remote name; nil for the last component of `source`.
    ///   - symbolicLinks: What becomes of symbolic links inside of a folder.
    public init(_ source: FilePath, as destination: RemotePath? = nil, symbolicLinks: SymbolicLinkPolicy = .follow) {
        content = .path(source)
        self.destination = destination
        self.symbolicLinks = symbolicLinks
    }

    /// Makes an item of bytes in memory.
    ///
    /// When it is enqueued they are written to a file in the queue's storage folder, which only its owner can read. That file goes when the
    /// bytes have arrived, or the session is removed; so a completed item of this kind can't be sent again.
    ///
    /// - Parameters:
    ///   - data: The bytes.
    ///   - destination: The remote name.
    public static func data(_ data: Data, as destination: RemotePath) -> TransferItem {
        TransferItem(.data(data), as: destination)
    }

    /// Makes an item of a remote file or folder, for a ``SessionRequest/download(items:from:to:name:tags:context:options:)``.
    ///
    /// Which of both it is is found out when it is received. A folder is received as by ``remoteFolder(_:as:symbolicLinks:)``, without its
    /// symbolic links, if the transport can list folders; its files come behind all others of the session.
    ///
    /// - Parameters:
    ///   - remotePath: The name below the endpoint's folder.
    ///   - name: Its local name below the session's folder: relative, without `..`. Folders in it are made when they are needed. Nil for the last
    ///     component of `remotePath`.
    public static func remote(_ remotePath: RemotePath, as name: FilePath? = nil) -> TransferItem {
        TransferItem(.remote(name), as: remotePath)
    }

    /// Makes an item of a remote folder, for a ``SessionRequest/download(items:from:to:name:tags:context:options:)``.
    ///
    /// The folder is listed when its session first runs, and keeps its structure below its own name or the one given. What is in it by then is
    /// received, folder by folder from the top, each in the order of the names' bytes where it has at most 16,384 entries. Folders without files
    /// leave nothing on this machine. What is no file, and links that are not followed, are left out, as ``ItemState/skipped`` items; a folder
    /// inside that can't be listed, and a name that can't be one on this machine, are items that fail, and the others go on.
    ///
    /// An endpoint whose transport can't list folders fails the item as ``TransferCore/FailureClass/unsupported``.
    ///
    /// - Parameters:
    ///   - remotePath: The folder's name below the endpoint's folder.
    ///   - name: Its local name below the session's folder: relative, without `..`. Nil for the last component of `remotePath`.
    ///   - symbolicLinks: What becomes of symbolic links inside. ``SymbolicLinkPolicy/follow`` is refused: where a link to a folder leads at a
    ///     server can't be told.
    public static func remoteFolder(
        _ remotePath: RemotePath, as name: FilePath? = nil, symbolicLinks: SymbolicLinkPolicy = .skip
    ) -> TransferItem {
        var item = TransferItem(.remoteFolder(name), as: remotePath)
        item.symbolicLinks = symbolicLinks
        return item
    }

    init(_ content: Content, as destination: RemotePath) {
        self.content = content
        self.destination = destination
    }
}
