import Foundation
import GRDB
package import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Converts the paths of local files to and from their stored form. Paths below the base folder are stored relative to that folder, because the
/// base folder can move between two launches of the app.
package struct SourceFolders: Sendable {
    /// The base folder; nil if all paths are stored as absolute paths.
    package let base: FilePath?
    /// The folder to which relative paths of new sessions refer: the base folder. If there is no base folder, the working directory at the time
    /// when the queue was opened.
    let folderOfRelativePaths: FilePath
    /// The folder of the ``Spool``, with in-memory data, streams, and copies of local files.
    package let spool: FilePath

    package init(base: FilePath?, spool: FilePath, workingFolder: FilePath = .workingFolder) {
        self.base = base
        self.spool = spool
        folderOfRelativePaths = base ?? workingFolder
    }

    /// Returns the folder below which no component of a resolved path (``resolvingLinks(_:)``) is a symbolic link: the base folder, whose own path
    /// may contain links, or the file system's root.
    func withoutLinks(_ path: FilePath) -> FilePath {
        if let base, path.starts(with: base) { base } else { "/" }
    }

    /// Returns the same path without symbolic links below ``withoutLinks(_:)``, and without `.` and `..`. Blocks.
    ///
    /// - Throws: The error of realpath(3). ELOOP if the result is a different file, because the path contains a link that only the kernel can
    ///   resolve (proc(5), `/proc/PID/root`).
    func resolvingLinks(_ path: FilePath) throws(Errno) -> FilePath {
        var resolved = try Self.resolved(path)
        guard FileIdentity(of: resolved) == FileIdentity(of: path) else { throw .tooManySymbolicLinkLevels }
        guard let base, let realBase = try? Self.resolved(base), resolved.removePrefix(realBase) else { return resolved }
        return base.pushing(resolved)
    }

    private static func resolved(_ path: FilePath) throws(Errno) -> FilePath {
        guard let found = unsafe path.withPlatformString({ unsafe realpath($0, nil) }) else { throw Errno(rawValue: errno) }
        defer { unsafe free(found) }
        return unsafe FilePath(platformString: found)
    }

    func stored(_ path: FilePath) -> [UInt8] {
        guard let base, path.starts(with: base) else { return path.bytes }
        var rest = path
        _ = rest.removePrefix(base)
        guard !rest.components.contains(where: { $0.kind == .parentDirectory }) else { return path.bytes }
        return rest.isEmpty ? [UInt8(ascii: ".")] : rest.bytes
    }

    func path(_ kind: ItemKind, _ stored: [UInt8]) -> [UInt8] {
        if kind.isSpooled { return spool.bytes + [UInt8(ascii: "/")] + stored }
        guard stored.first != UInt8(ascii: "/"), let base else { return stored }
        return stored == [UInt8(ascii: ".")] ? base.bytes : base.bytes + [UInt8(ascii: "/")] + stored
    }
}

extension QueueStore {
    /// Stores the base folder for later openings, and returns it. If `base` is nil, returns the stored base folder, if any.
    static func remember(_ base: FilePath?, in pool: DatabasePool) throws -> FilePath? {
        let known = try pool.read { try Data.fetchOne($0, sql: "SELECT path FROM base_folder") }.map { FilePath(bytes: $0) }
        guard let base else { return known }
        guard base.isAbsolute else {
            throw QueueError(.storageUnavailable, "The base folder \(base) must be an absolute path.")
        }
        if base != known {
            try pool.write {
                try $0.execute(
                    sql: "INSERT INTO base_folder(only, path) VALUES (1, ?) ON CONFLICT DO UPDATE SET path = excluded.path",
                    arguments: [Data(base.bytes)])
            }
        }
        return base
    }
}

extension FilePath {
    /// The working directory of this process, or the root folder if the working directory was removed.
    ///
    /// `FileManager.currentDirectoryPath` can't return paths that are not UTF-8.
    package static var workingFolder: FilePath {
        guard let path = unsafe getcwd(nil, 0) else { return "/" }
        defer { unsafe free(path) }
        return unsafe FilePath(platformString: path)
    }
}
