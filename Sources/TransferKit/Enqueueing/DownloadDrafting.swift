import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The local folder for a session's downloads, and the policy for existing files in it.
struct DownloadFolder: Sendable {
    var path: FilePath
    var overwrite: OverwritePolicy
}

/// Creates drafts (``ItemDraft``) of a download's items, and chooses their local names. All local names are inside the download folder. Blocks.
struct DownloadDrafting {
    private let folder: DownloadFolder
    private var names: Set<FilePath> = []
    /// The folders, relative to the download folder, that contain one of the names.
    private var parents: Set<FilePath> = []
    /// Whether the session downloads the endpoint's folder, whose content arrives directly in the download folder.
    private var hasEndpointFolder = false

    /// Checks the download folder.
    ///
    /// - Throws: A ``TransferError`` if the folder does not exist, is not a folder, or is not writable.
    init(into folder: DownloadFolder) throws(TransferError) {
        self.folder = folder
        let refusal: TransferError? = unsafe folder.path.withPlatformString { name in
            var status = stat()
            guard unsafe stat(name, &status) == 0 else { return .destinationUnavailable(folder.path, errno: errno) }
            guard status.st_mode & S_IFMT == S_IFDIR else {
                return TransferError(.permanent, .notWritable, "Cannot download to \(folder.path), which is not a folder. Choose a folder.")
            }
            guard unsafe faccessat(AT_FDCWD, name, W_OK | X_OK, AT_EACCESS) == 0 else {
                return .destinationUnavailable(folder.path, errno: errno)
            }
            return nil
        }
        if let refusal { throw refusal }
    }

    /// Creates a draft of a remote file.
    ///
    /// - Parameter given: The local name, relative to the download folder; nil for the remote file's name.
    /// - Throws: A ``TransferError``; with the code ``TransferError/Code/fileExists`` if the local file exists and must not be replaced.
    mutating func draft(of remotePath: RemotePath, as given: FilePath?) throws(TransferError) -> ItemDraft {
        let (name, path) = try localPath(of: remotePath, as: given)
        // An existing local folder is not an error here: the remote path may be a folder, whose files are then downloaded into the local folder.
        if folder.overwrite == .never, let kind = Self.kind(of: path), kind != S_IFDIR { throw .fileExists(path) }
        return ItemDraft(kind: .download, source: Data(name.bytes), destination: Data(remotePath.bytes), size: 0, isUnsized: true)
    }

    /// Creates a draft of a remote folder. The local folder may exist: the overwrite policy applies to each file in it.
    ///
    /// - Parameter given: The local name, relative to the download folder; nil for the remote folder's name.
    /// - Throws: A ``TransferError``.
    mutating func draft(
        ofFolder remotePath: RemotePath, as given: FilePath?, _ symbolicLinks: SymbolicLinkPolicy
    ) throws(TransferError) -> ItemDraft {
        guard symbolicLinks != .follow else {
            throw TransferError(
                .permanent, .unsupported,
                "Cannot follow links to folders in \(remotePath), because they could form a cycle. Skip links, or follow only links to files."
            )
        }
        let name: FilePath
        if remotePath.isEndpointFolder, given == nil {
            name = try endpointFolderName()
        } else {
            let path: FilePath
            (name, path) = try localPath(of: remotePath, as: given)
            guard Self.kind(of: path).map({ $0 == S_IFDIR }) ?? true else {
                throw TransferError(
                    .permanent, .fileExists, "\(path) exists and is not a folder. Move it away, or choose another name.")
            }
        }
        return ItemDraft(
            kind: .remoteFolder, source: Data(name.bytes), destination: Data(remotePath.bytes), size: 0, symbolicLinks: symbolicLinks)
    }

    /// Returns the empty local name of the endpoint's folder: the folder's content arrives directly in the download folder.
    ///
    /// - Throws: ``endpointFolderWithOtherItems`` if the session has other items, because their paths could be inside the endpoint's folder.
    private mutating func endpointFolderName() throws(TransferError) -> FilePath {
        guard names.isEmpty, !hasEndpointFolder else { throw Self.endpointFolderWithOtherItems }
        hasEndpointFolder = true
        return FilePath()
    }

    static let endpointFolderWithOtherItems = TransferError(
        .permanent, .unsafeName,
        "The endpoint's folder must be the only item of its session, because its content arrives directly in the download folder. Download other items in a separate session, or give the folder a local name."
    )

    /// Returns the local name and path of an item.
    ///
    /// - Throws: A ``TransferError`` if the name is invalid, if two items have the same path, or if the path of an item is inside the path of
    ///   another item. The last rule includes files, because an item enqueued as a file can be a folder on the server.
    private mutating func localPath(
        of remotePath: RemotePath, as given: FilePath?
    ) throws(TransferError) -> (name: FilePath, path: FilePath) {
        guard !hasEndpointFolder else { throw Self.endpointFolderWithOtherItems }
        let name = given ?? FilePath(bytes: remotePath.lastComponent)
        guard (try? RemotePath(bytes: name.bytes)) != nil, name.components.allSatisfy({ $0.kind == .regular }) else {
            throw TransferError(
                .permanent, .unsafeName,
                "The local name \"\(name)\" is empty, absolute or outside the download folder. Choose a name below \(folder.path).")
        }
        let path = folder.path.pushing(name)
        var parent = name.removingLastComponent()
        while !parent.isEmpty {
            guard !names.contains(parent) else {
                throw TransferError(
                    .permanent, .unsafeName,
                    "\(path) would be downloaded into \(folder.path.pushing(parent)), which is another item of the session. Choose a name outside that folder."
                )
            }
            parents.insert(parent)
            parent.removeLastComponent()
        }
        guard names.insert(name).inserted, !parents.contains(name) else {
            throw TransferError(.permanent, .unsafeName, "Two items would be downloaded to \(path). Give each a different name.")
        }
        return (name, path)
    }

    /// The file type at a path as mode bits (inode(7)), without following symbolic links; nil if the path does not exist.
    private static func kind(of path: FilePath) -> mode_t? {
        var status = stat()
        return unsafe path.withPlatformString { unsafe lstat($0, &status) } == 0 ? status.st_mode & S_IFMT : nil
    }
}
