import Foundation
package import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Prepares and checks the storage folder of a queue.
package enum StorageFolder {
    /// Creates the folder if it does not exist, and checks it. A new folder is accessible only to this user, because anyone who knows an
    /// upload URL in the database can write to that upload. Blocks.
    ///
    /// - Throws: ``QueueError`` with the code `storageUnavailable`, for example if another user could change the folder, or if one of its files is
    ///   a symbolic link.
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
            let code = errno
            var status = stat()
            if unsafe made.withPlatformString({ unsafe stat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR {
                // The process that created the folder may have ended before it synced the folder's name.
                if status.st_uid == geteuid() { sync(made.removingLastComponent()) }
                continue
            }
            // An existing parent may be unwritable, or on a read-only file system. mkdir(2) can report this problem instead of EEXIST.
            guard code != EEXIST else { continue }
            throw QueueError(
                .storageUnavailable,
                "Cannot create the storage folder \(folder): \(Errno(rawValue: code)). Choose another folder, or fix its permissions.")
        }
        var status = stat()
        if unsafe folder.withPlatformString({ unsafe stat($0, &status) }) == 0, status.st_mode & S_IFMT != S_IFDIR {
            throw QueueError(.storageUnavailable, "Cannot use the storage folder \(folder): it is a file, not a folder.")
        }
        guard unsafe folder.withPlatformString({ unsafe access($0, R_OK | W_OK | X_OK) }) == 0 else {
            throw QueueError(
                .storageUnavailable,
                "Cannot use the storage folder \(folder): \(Errno(rawValue: errno)). The queue needs to read and write there.")
        }
        try FolderTrust.check(folder)
        try checkContent(of: folder)
    }

    /// Rejects symbolic links and other unexpected file types among the files that the queue opens by name.
    private static func checkContent(of folder: FilePath) throws(QueueError) {
        let database = ["queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm", "queue.sqlite-journal"]
        for (name, kind) in (database + ["owner.lock"]).map({ ($0, S_IFREG) }) + [("spool", S_IFDIR)] {
            let path = folder.appending(name)
            var status = stat()
            guard unsafe path.withPlatformString({ unsafe lstat($0, &status) }) == 0, status.st_mode & S_IFMT != kind else { continue }
            throw wrongFileType(path, isFolder: kind == S_IFDIR)
        }
    }

    /// Opens a file of the folder, but never through a link. Through a link, another user could redirect the queue's writes to any file of this
    /// user. Blocks.
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
            if error as? Errno == .tooManySymbolicLinkLevels { throw wrongFileType(path, isFolder: false) }
            throw QueueError(.storageUnavailable, "Cannot open \(path): \(error). Check the permissions of the storage folder.")
        }
        var status = stat()
        guard unsafe fstat(descriptor.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            try? descriptor.close()
            throw wrongFileType(path, isFolder: false)
        }
        guard mode == .readOnly || status.st_nlink <= 1 else {
            try? descriptor.close()
            throw QueueError(
                .storageUnavailable,
                "\(path) has more than one hard link, so the queue does not write to it. Check where the file comes from, and remove it.")
        }
        return descriptor
    }

    private static func wrongFileType(_ path: FilePath, isFolder: Bool) -> QueueError {
        QueueError(
            .storageUnavailable,
            "\(path) is not a \(isFolder ? "folder" : "regular file"). The queue does not follow links in its storage folder. "
                + "Check where \(path) comes from, and remove it."
        )
    }

    /// Makes the names in a folder durable, if possible. Ignores errors, because the folder may be unreadable, or on a file system without
    /// this operation. Blocks.
    ///
    /// - Parameter folder: The folder, or a link to it; empty for the working directory.
    package static func sync(_ folder: FilePath) {
        // The component "." makes the system follow a link.
        try? Spool.sync(folder.appending("."))
    }

    /// Checks the header of the database file (sqlite.org/fileformat.html, section 1.3) before SQLite can change anything.
    ///
    /// SQLite treats a missing file, and a file shorter than a page, as an empty database, so a lost database would look new. For an empty
    /// or missing file, SQLite would also delete the write-ahead log.
    ///
    /// - Parameter databaseWasRecorded: Whether an earlier owner noted in the lock file that the folder contains a database.
    static func inspect(_ path: FilePath, databaseWasRecorded: Bool) throws(QueueError) {
        var status = stat()
        if unsafe path.withPlatformString({ unsafe lstat($0, &status) }) != 0, errno == ENOENT {
            guard databaseWasRecorded || hasFilesOfEarlierQueue(of: path) else { return }
            throw lostDatabase("The database \(path) is missing", in: path.removingLastComponent())
        }
        guard let descriptor = try? open(path, .readOnly) else { return }
        defer { try? descriptor.close() }
        var header = [UInt8](repeating: 0, count: 100)
        guard let count = try? unsafe header.withUnsafeMutableBytes({ unsafe try descriptor.read(into: $0) }) else { return }
        guard count > 0 else {
            guard databaseWasRecorded || hasFilesOfEarlierQueue(of: path) else { return }
            throw lostDatabase("The database \(path) is empty", in: path.removingLastComponent())
        }
        guard count == 100, header.starts(with: "SQLite format 3\0".utf8) else {
            throw QueueError(
                .storageDamaged,
                "The database \(path) is damaged: it has no SQLite header. Restore the folder from a backup, or move it away.")
        }
        let version = integer(header[60..<64])
        let application = integer(header[68..<72])
        guard application == 0 || application == Schema.applicationID else {
            throw QueueError(.storageUnavailable, "\(path) is the database of another program. Use another folder.")
        }
        try checkVersion(version, of: path)
    }

    private static func lostDatabase(_ problem: String, in folder: FilePath) -> QueueError {
        QueueError(
            .storageDamaged,
            "\(problem), but the folder contains files of an earlier queue. Restore the folder from a backup. To begin with an empty queue, delete "
                + "all files in \(folder), including owner.lock.")
    }

    /// Returns whether an earlier queue left a write-ahead log with transactions, or spooled content.
    private static func hasFilesOfEarlierQueue(of path: FilePath) -> Bool {
        var status = stat()
        let log = FilePath(path.string + "-wal")
        if unsafe log.withPlatformString({ unsafe stat($0, &status) }) == 0, status.st_size > 0 { return true }
        let spool = try? DirectoryStream(opening: path.removingLastComponent().appending("spool"), followsLink: false)
        return (try? spool?.next()) != nil
    }

    private static func integer(_ bytes: ArraySlice<UInt8>) -> Int32 {
        bytes.reduce(0) { $0 << 8 | Int32($1) }
    }

    /// An upper bound, in bytes, for the index of a write-ahead log of at most ``QueueStore/maximumLogSize`` (sqlite.org/walformat.html, section
    /// 2.1).
    private static let indexSize: Int64 = 256 << 10

    /// Checks that the disk has room for the index of the write-ahead log, which SQLite maps into memory.
    ///
    /// SQLite allocates one block in each page of the index. If blocks are smaller than a page and the disk is full, an access to another
    /// block of the page would kill this process with SIGBUS.
    static func checkSpace(in folder: FilePath) throws(QueueError) {
        guard DiskSpace.blockSize(at: folder) ?? .max < 4_096, let free = DiskSpace.free(at: folder), free < indexSize else { return }
        throw QueueError(
            .storageUnavailable, "The disk of the storage folder \(folder) is full: \(free) bytes are free. Free some space.")
    }

    /// Creates the database file, accessible only to this user, before SQLite creates it with wider permissions. SQLite gives its other
    /// files the same mode. Without this call, other users could read the files in a folder that the queue did not create.
    static func makePrivate(_ path: FilePath) {
        // If this fails, SQLite fails next with a better error.
        try? open(path, .readWrite, options: .create).close()
    }

    /// Checks that this version can read a schema.
    ///
    /// - Parameter version: The version of the schema; 0 if the database is new.
    static func checkVersion(_ version: Int32, of path: FilePath) throws(QueueError) {
        guard version <= Schema.version else {
            throw QueueError(
                .storageTooNew,
                "The database \(path) has schema \(version), which a newer version of this software wrote; this version reads schema \(Schema.version). Update this software, or use another folder."
            )
        }
        guard version == 0 || version >= Schema.oldestVersion else {
            throw QueueError(
                .storageUnavailable,
                "The database \(path) has schema \(version), which a pre-release version wrote. "
                    + "Finish its sessions with that version, or use another folder."
            )
        }
    }
}
