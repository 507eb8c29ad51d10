public import Foundation
public import SystemPackage
public import TransferCore

/// An item of a session, and its name at the destination. An upload item is a file, a folder with all its content, data in memory, a stream that the
/// app produces during the transfer, or a form with several files. A download item is a remote file, or a remote folder with all its content.
public struct TransferItem: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        case path(FilePath)
        case data(Data)
        case stream(StreamProducer)
        case form([FormPart])
        /// A download to this local name; nil for the last component of the remote name.
        case remote(FilePath?)
        /// A download of a folder with all its content. The local name is as for ``remote(_:)``.
        case remoteFolder(FilePath?)
    }

    package var content: Content

    /// The remote name below the endpoint's folder; nil for the last component of ``source``, or for the name of a form's first file. Also
    /// nil if the given name was invalid.
    public var destination: RemotePath? {
        didSet { invalidDestination = nil }
    }

    /// The given remote name if it is not a valid ``/TransferCore/RemotePath``; otherwise nil. `enqueue` rejects an item with an invalid name.
    package var invalidDestination: String?

    /// The policy for symbolic links in a folder. For a file, and for the files of a form, only `skip` has an effect.
    ///
    /// With `skip`, and for a folder also with `followFiles`, the call of `enqueue` resolves the links in the item's path, including a link that is
    /// itself the item. If a symbolic link has replaced the file, the folder, or one of its parent folders since that call, the queue sends
    /// nothing through that link.
    public var symbolicLinks = SymbolicLinkPolicy.follow

    /// The URL of an existing upload on the server, for transports that would otherwise create one; nil for none. Not for folders and
    /// downloads.
    ///
    /// The queue does not remove this upload when the session is cancelled. Anyone who has the URL may be able to write to the upload. The database
    /// contains the URL until the session is removed. Logs, errors, events and statuses never contain the URL.
    public var uploadURL: String? {
        get { uploadCapability?.text }
        set { uploadCapability = newValue.map(Capability.init) }
    }

    package var uploadCapability: Capability?

    /// The URL at which the item's upload is created; nil for the session's ``SessionOptions/creationURL`` or the endpoint's address. The rules of
    /// the session's URL also apply to this URL. Not for folders, downloads, and items with an ``uploadURL``.
    public var creationURL: String? {
        get { creationCapability?.text }
        set { creationCapability = newValue.map(Capability.init) }
    }

    package var creationCapability: Capability?

    /// Whether `enqueue` copies the local file into the queue's storage folder, so that the app can change or delete the file as soon as the call
    /// returns. Only for a single file. Default: false, so the queue reads the file in place.
    ///
    /// The copy shares the file's blocks if the file system supports this (Btrfs, XFS). Otherwise, all bytes are copied, except the holes of a sparse
    /// file. If the disk lacks this space, `enqueue` throws before it copies the first byte. If the task is cancelled during the copy, `enqueue`
    /// removes the copies and throws `CancellationError`.
    ///
    /// The copy is on disk when `enqueue` returns, and only this user can read it. The queue deletes the copy when the item is completed or
    /// the session is removed, so a completed item can't be sent again. A failed or cancelled item keeps its copy for a retry. The copy
    /// keeps the file's modification time. A transport that sends permissions sends those that the file had when it was copied.
    ///
    /// ```swift
    /// var item = TransferItem("/tmp/export.mov")
    /// item.keepsCopy = true
    /// ```
    public var keepsCopy = false

    /// The local file or folder to send; nil for other kinds of items. The queue resolves a relative path against its base folder; see
    /// ``Storage/folder(_:base:ownerTimeout:)``.
    public var source: FilePath? {
        switch content {
        case .path(let path): path
        case .data, .stream, .form, .remote, .remoteFolder: nil
        }
    }

    /// Creates an item for a file or a folder. `enqueue` determines which of the two it is.
    ///
    /// A folder is read when its session first runs, and its content at that time is sent. The folder arrives under its own name or the
    /// given name, with its subfolders. The entries of a folder are sent in the byte order of their names if there are at most 16,384.
    /// Folders without files are not created on the server. Sockets, FIFOs and devices are skipped, as ``ItemState/skipped`` items. An
    /// unreadable subfolder becomes a failed item, and the other items continue.
    ///
    /// - Parameters:
    ///   - source: The file or folder: a `FilePath`, a `String` or a file `URL`.
    ///   - destination: The remote name: a `String` or a ``/TransferCore/RemotePath``, checked by `enqueue`. Nil for the last component of `source`.
    ///   - symbolicLinks: The policy for symbolic links inside a folder.
    public init(
        _ source: some LocalPathConvertible, as destination: (some RemotePathConvertible)? = RemotePath?.none,
        symbolicLinks: SymbolicLinkPolicy = .follow
    ) {
        self.init(.path(source.filePath), as: destination)
        self.symbolicLinks = symbolicLinks
    }

    /// Creates an item for data in memory.
    ///
    /// `enqueue` writes the data to a file in the queue's storage folder. Only this user can read the file. The queue deletes the file when
    /// the item is completed or the session is removed, so a completed item of this kind can't be sent again.
    ///
    /// - Parameters:
    ///   - data: The content of the remote file.
    ///   - destination: The remote name.
    public static func data(_ data: Data, as destination: some RemotePathConvertible) -> TransferItem {
        TransferItem(.data(data), as: destination)
    }

    /// Creates an item for a remote file or folder, for a ``SessionRequest/download(items:from:to:name:tags:context:options:)``.
    ///
    /// The transfer determines which of the two it is. If the transport can list folders, a folder is downloaded as with
    /// ``remoteFolder(_:as:symbolicLinks:)``, without its symbolic links. The folder's files follow all other files of the session.
    ///
    /// - Parameters:
    ///   - remotePath: The name below the endpoint's folder.
    ///   - name: The local name below the session's folder: relative, without `..`. Folders in the name are created when needed. Nil for the last
    ///     component of `remotePath`.
    public static func remote(
        _ remotePath: some RemotePathConvertible, as name: (some LocalPathConvertible)? = FilePath?.none
    ) -> TransferItem {
        TransferItem(.remote(name?.filePath), as: remotePath)
    }

    /// Creates an item for a remote folder, for a ``SessionRequest/download(items:from:to:name:tags:context:options:)``.
    ///
    /// The folder is listed when its session first runs, and its content at that time is downloaded. The folder arrives under its own name
    /// or the given name, with its subfolders. The files of a folder are downloaded before the files of its subfolders. The entries of a
    /// folder are downloaded in the byte order of their names if there are at most 16,384. Folders without files are not created on this
    /// machine.
    ///
    /// Entries that are neither files nor folders, and links that are not followed, are skipped, as ``ItemState/skipped`` items. A subfolder that
    /// can't be listed, and a name that is not valid on this machine, become failed items, and the other items continue.
    ///
    /// ``/TransferCore/RemotePath/endpointFolder`` stands for the endpoint's folder itself. Without a local name, the content of the
    /// endpoint's folder arrives directly in the session's folder, and the item must be the only item of the session.
    ///
    /// If no endpoint of the account can list folders, the item fails as ``/TransferCore/FailureClass/unsupported``.
    ///
    /// - Parameters:
    ///   - remotePath: The folder's name below the endpoint's folder.
    ///   - name: The local name below the session's folder: relative, without `..`. Nil for the last component of `remotePath`.
    ///   - symbolicLinks: The policy for symbolic links in the folder. ``SymbolicLinkPolicy/follow`` is rejected, because links to folders
    ///     on a server could form a cycle.
    public static func remoteFolder(
        _ remotePath: some RemotePathConvertible, as name: (some LocalPathConvertible)? = FilePath?.none,
        symbolicLinks: SymbolicLinkPolicy = .skip
    ) -> TransferItem {
        var item = TransferItem(.remoteFolder(name?.filePath), as: remotePath)
        item.symbolicLinks = symbolicLinks
        return item
    }

    init(_ content: Content, as destination: (some RemotePathConvertible)?) {
        self.content = content
        do throws(TransferError) {
            self.destination = try destination?.remotePath()
        } catch {
            invalidDestination = destination?.description
        }
    }
}
