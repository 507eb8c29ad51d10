import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Where the downloads of a session go, and what they may replace there.
struct DownloadFolder: Sendable {
    var path: FilePath
    var overwrite: OverwritePolicy
}

/// Turns remote files into drafts: settles their local names, none of which leaves its folder. Blocks.
struct DownloadDrafting {
    private let folder: DownloadFolder
    private var names: Set<FilePath> = []
    /// The folders that any of them is in.
    private var parents: Set<FilePath> = []

    /// - Throws: A ``TransferError`` if the folder can't be written to.
    init(into folder: DownloadFolder) throws(TransferError) {
        self.folder = folder
        let refusal: TransferError? = unsafe folder.path.withPlatformString { name in
            var status = stat()
            guard unsafe stat(name, &status) == 0 else { return .destinationUnavailable(folder.path, errno: errno) }
            guard status.st_mode & S_IFMT == S_IFDIR else {
                return TransferError(.permanent, .notWritable, "\(folder.path) is no folder, so nothing can be downloaded into it.")
            }
            guard unsafe faccessat(AT_FDCWD, name, W_OK | X_OK, AT_EACCESS) == 0 else {
                return .destinationUnavailable(folder.path, errno: errno)
            }
            return nil
        }
        if let refusal { throw refusal }
    }

    /// - Throws: A ``TransferError``; with the code ``TransferError/Code/fileExists`` if nothing may be replaced and something is there.
    mutating func draft(of remotePath: RemotePath, as given: FilePath?) throws(TransferError) -> ItemDraft {
        let (name, path) = try place(of: remotePath, as: given)
        // What turns out to be a folder fills the one that is there.
        if folder.overwrite == .never, let kind = Self.kind(of: path), kind != S_IFDIR { throw .fileExists(path) }
        return ItemDraft(kind: .download, source: Data(name.bytes), destination: Data(remotePath.bytes), size: 0, isUnsized: true)
    }

    /// - Throws: A ``TransferError``. A folder that is there already is no reason: each file decides for itself.
    mutating func draft(
        ofFolder remotePath: RemotePath, as given: FilePath?, _ symbolicLinks: SymbolicLinkPolicy
    ) throws(TransferError) -> ItemDraft {
        guard symbolicLinks != .follow else {
            throw TransferError(
                .permanent, .unsupported,
                "The links to folders in \(remotePath) can't be followed, as nobody can tell whether they have an end; skip links, or follow those to files."
            )
        }
        let (name, path) = try place(of: remotePath, as: given)
        guard Self.kind(of: path).map({ $0 == S_IFDIR }) ?? true else {
            throw TransferError(
                .permanent, .fileExists, "\(path) is there already, and is no folder. Move it away, or choose another name.")
        }
        return ItemDraft(
            kind: .remoteFolder, source: Data(name.bytes), destination: Data(remotePath.bytes), size: 0, symbolicLinks: symbolicLinks)
    }

    /// The local name of an item, which no other item has, nor is in it: whatever was named as a file may turn out to be a folder.
    private mutating func place(
        of remotePath: RemotePath, as given: FilePath?
    ) throws(TransferError) -> (name: FilePath, path: FilePath) {
        let name = given ?? FilePath(bytes: remotePath.lastComponent)
        guard (try? RemotePath(bytes: name.bytes)) != nil, name.components.allSatisfy({ $0.kind == .regular }) else {
            throw TransferError(
                .permanent, .unsafeName,
                "The local name \"\(name)\" is empty, absolute or leaves its folder; name a file below \(folder.path).")
        }
        let path = folder.path.pushing(name)
        var parent = name.removingLastComponent()
        while !parent.isEmpty {
            guard !names.contains(parent) else {
                throw TransferError(
                    .permanent, .unsafeName,
                    "\(path) would be downloaded into \(folder.path.pushing(parent)), which is another item of the same session; give it a name outside of that."
                )
            }
            parents.insert(parent)
            parent.removeLastComponent()
        }
        guard names.insert(name).inserted, !parents.contains(name) else {
            throw TransferError(.permanent, .unsafeName, "Two items would be downloaded to \(path); give each a name of its own.")
        }
        return (name, path)
    }

    /// What is at a path itself, as mode bits (inode(7)); nil if nothing.
    private static func kind(of path: FilePath) -> mode_t? {
        var status = stat()
        return unsafe path.withPlatformString { unsafe lstat($0, &status) } == 0 ? status.st_mode & S_IFMT : nil
    }
}
