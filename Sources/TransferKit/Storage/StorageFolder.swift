import Foundation
package import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The folder that a queue is stored in.
package enum StorageFolder {
    /// Makes the folder, for its owner alone: upload URLs in the store are capabilities. Blocks.
    ///
    /// - Throws: ``QueueError`` with the code `storageUnavailable`, also if another user could change the folder, or if one of its files is a
    ///   symbolic link.
    package static func prepare(_ folder: FilePath) throws(QueueError) {
        guard !folder.isEmpty else { throw QueueError(.storageUnavailable, "The path of the storage folder is empty.") }
        var made = FilePath(root: folder.root)
        for component in folder.components {
            made.append(component)
            let mode: mode_t = made.components.count == folder.components.count ? 0o700 : 0o777
            if unsafe made.withPlatformString({ unsafe mkdir($0, mode) }) == 0 {
                sync(made.removingLastComponent())
                continue
            }
            guard errno != EEXIST else { continue }
            // A parent that exists may be unwritable, or on a read-only file system, which mkdir(2) may tell before EEXIST.
            let code = errno
            var status = stat()
            if unsafe made.withPlatformString({ unsafe stat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR { continue }
            throw QueueError(
                .storageUnavailable,
                "The storage folder \(folder) can't be made: \(Errno(rawValue: code)). Choose another, or mend its permissions.")
        }
        // Also if it was there: a process that ended before this sync may have made it.
        sync(folder.removingLastComponent())
        var status = stat()
        if unsafe folder.withPlatformString({ unsafe stat($0, &status) }) == 0, status.st_mode & S_IFMT != S_IFDIR {
            throw QueueError(.storageUnavailable, "The storage folder \(folder) can't be used: it is a file, and no folder.")
        }
        guard unsafe folder.withPlatformString({ unsafe access($0, R_OK | W_OK | X_OK) }) == 0 else {
            throw QueueError(
                .storageUnavailable,
                "The storage folder \(folder) can't be used: \(Errno(rawValue: errno)). The queue needs to read and write there.")
        }
        try FolderTrust.check(folder)
        try checkContent(of: folder)
    }

    /// Refuses links and the like under the names that the queue opens.
    private static func checkContent(of folder: FilePath) throws(QueueError) {
        let database = ["queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm", "queue.sqlite-journal"]
        for (name, kind) in (database + ["owner.lock"]).map({ ($0, S_IFREG) }) + [("spool", S_IFDIR)] {
            let path = folder.appending(name)
            var status = stat()
            guard unsafe path.withPlatformString({ unsafe lstat($0, &status) }) == 0, status.st_mode & S_IFMT != kind else { continue }
            throw linked(path, isFolder: kind == S_IFDIR)
        }
    }

    /// Opens a file of the folder, and never through a link, by which another user could have any file of this user written. Blocks.
    ///
    /// - Throws: ``QueueError`` with the code `storageUnavailable`.
    package static func open(
        _ path: FilePath, _ mode: FileDescriptor.AccessMode, options: FileDescriptor.OpenOptions = []
    ) throws(QueueError) -> FileDescriptor {
        let descriptor: FileDescriptor
        do {
            descriptor = try FileDescriptor.open(
                path, mode, options: options.union([.noFollow, .closeOnExec, .nonBlocking]),
                permissions: options.contains(.create) ? [.ownerReadWrite] : nil)
        } catch {
            if error as? Errno == .tooManySymbolicLinkLevels { throw linked(path, isFolder: false) }
            throw QueueError(.storageUnavailable, "\(path) can't be opened: \(error). Check the permissions of the storage folder.")
        }
        var status = stat()
        guard unsafe fstat(descriptor.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            try? descriptor.close()
            throw linked(path, isFolder: false)
        }
        return descriptor
    }

    private static func linked(_ path: FilePath, isFolder: Bool) -> QueueError {
        QueueError(
            .storageUnavailable,
            "\(path) is not a \(isFolder ? "folder" : "regular file"), and the queue follows no links in its storage folder. Find out who put it there, and remove it."
        )
    }

    /// Makes the names in a folder durable, as far as the system permits: a parent may be unreadable, or on a file system without this.
    static func sync(_ folder: FilePath) {
        try? Spool.sync(folder.isEmpty ? FilePath(".") : folder)
    }

    /// Looks into the database file's header (sqlite.org/fileformat.html, section 1.3) before SQLite may change anything.
    ///
    /// SQLite takes a file that is shorter than a page for an empty database, so that a truncated store would seem to be a new one; of an empty
    /// file, it would also delete the write-ahead log.
    ///
    /// - Parameter notesStore: Whether an earlier owner noted that the folder holds a store.
    static func inspect(_ path: FilePath, notesStore: Bool) throws(QueueError) {
        guard let descriptor = try? open(path, .readOnly) else { return }
        defer { try? descriptor.close() }
        var header = [UInt8](repeating: 0, count: 100)
        guard let count = try? unsafe header.withUnsafeMutableBytes({ unsafe try descriptor.read(into: $0) }) else { return }
        guard count > 0 else {
            guard notesStore || hasRemains(of: path) else { return }
            throw QueueError(
                .storageDamaged,
                "The store \(path) is damaged: the file is empty, but the folder holds parts of an earlier queue. Restore the folder from a backup, or move it away."
            )
        }
        guard count == 100, header.starts(with: "SQLite format 3\0".utf8) else {
            throw QueueError(
                .storageDamaged,
                "The store \(path) is damaged: it does not begin as a database does. Restore it from a backup, or move it away.")
        }
        let version = integer(header[60..<64])
        let application = integer(header[68..<72])
        guard application == 0 || application == Schema.applicationID else {
            throw QueueError(.storageUnavailable, "\(path) is the database of another program. Use another folder.")
        }
        try checkVersion(version, of: path)
    }

    /// Whether there is a write-ahead log with transactions, or content that an earlier queue kept for its sessions.
    private static func hasRemains(of path: FilePath) -> Bool {
        var status = stat()
        let log = FilePath(path.string + "-wal")
        if unsafe log.withPlatformString({ unsafe stat($0, &status) }) == 0, status.st_size > 0 { return true }
        let spool = try? DirectoryStream(opening: path.removingLastComponent().appending("spool"), followsLink: false)
        return (try? spool?.next()) != nil
    }

    private static func integer(_ bytes: ArraySlice<UInt8>) -> Int32 {
        bytes.reduce(0) { $0 << 8 | Int32($1) }
    }

    /// Makes the database before SQLite does, for its owner alone; the files beside it get the same mode. In a folder that was there before,
    /// others could read it otherwise.
    static func makePrivate(_ path: FilePath) {
        // Whatever stands in the way, SQLite meets it next and says it better.
        try? open(path, .readWrite, options: .create).close()
    }

    /// - Parameter version: The schema; 0 if nothing was written yet.
    static func checkVersion(_ version: Int32, of path: FilePath) throws(QueueError) {
        guard version <= Schema.version else {
            throw QueueError(
                .storageTooNew,
                "The store \(path) has schema \(version), which a newer version of this software wrote; this one reads schema \(Schema.version). Update this software, or use another folder."
            )
        }
        guard version == 0 || version >= Schema.oldestVersion else {
            throw QueueError(
                .storageUnavailable,
                "The store \(path) has schema \(version), which a version before the first release wrote. Finish its sessions with that version, or use another folder."
            )
        }
    }
}
