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
        let name = given ?? FilePath(bytes: remotePath.lastComponent)
        guard (try? RemotePath(bytes: name.bytes)) != nil, name.components.allSatisfy({ $0.kind == .regular }) else {
            throw TransferError(
                .permanent, .unsafeName,
                "The local name \"\(name)\" is empty, absolute or leaves its folder; name a file below \(folder.path).")
        }
        let path = folder.path.pushing(name)
        guard names.insert(name).inserted else {
            throw TransferError(.permanent, .unsafeName, "Two items would be downloaded to \(path); give each a name of its own.")
        }
        if folder.overwrite == .never, Self.isTaken(path) { throw .fileExists(path) }
        return ItemDraft(kind: .download, source: Data(name.bytes), destination: Data(remotePath.bytes), size: 0, isUnsized: true)
    }

    private static func isTaken(_ path: FilePath) -> Bool {
        var status = stat()
        return unsafe path.withPlatformString { unsafe lstat($0, &status) } == 0
    }
}
