import Foundation
import GRDB
package import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The folder with the files for in-memory data, for streams, and for copies of local files. Only the user who owns the storage folder can
/// read these files.
///
/// A file with in-memory data, or a copy, is synced to disk before the commit of its session. The file is deleted after the commit that
/// makes the file unnecessary. A crash before the first commit or before the deletion can leave an unused file, which the next opening of
/// the queue removes.
package struct Spool: Sendable {
    package let folder: FilePath

    enum Content: Sendable {
        case data(Data)
        /// The content of a local file, whose size must not have changed; see ``TransferItem/keepsCopy``.
        case copy(of: FilePath, size: Int64)
    }

    init(in storage: FilePath) {
        self.init(folder: storage.appending("spool"))
    }

    init(folder: FilePath) {
        self.folder = folder
    }

    /// Writes files, and returns their names once the files and the folder are on disk. Blocks.
    ///
    /// - Throws: ``QueueError`` with the code `storageUnavailable`, or `unreadableItems` if a file to copy can't be read or has changed;
    ///   `CancellationError` during a copy. After an error, deletes the files that it has written.
    func write(_ contents: [Content], _ cancellation: CopyCancellation) throws -> [Data] {
        guard !contents.isEmpty else { return [] }
        var names: [Data] = []
        do {
            try makeFolder()
            for content in contents {
                switch content {
                case .data(let data):
                    let name = UUID().uuidString
                    names.append(Data(name.utf8))
                    try Self.write(data, to: folder.appending(name))
                case .copy(let source, let size):
                    let original = try Self.open(source)
                    try original.closeAfter {
                        let name = try Self.nameOfCopy(of: original, source)
                        names.append(Data(name.utf8))
                        try Self.copy(original, source, size: size, to: folder.appending(name), cancellation)
                    }
                }
            }
            try Self.sync(folder)
            return names
        } catch let error as TransferError {
            delete(names)
            throw QueueError(.unreadableItems, error.message)
        } catch let error where error is QueueError || error is CancellationError {
            delete(names)
            throw error
        } catch {
            delete(names)
            throw QueueError(
                .storageUnavailable,
                "Cannot store content in \(folder): \(error). Free some space, or fix the folder's permissions.")
        }
    }

    /// Creates the folder if it does not exist, and makes its name durable. Also syncs the name of an existing folder, because the process
    /// that created the folder may have ended before it synced the name.
    func makeFolder() throws {
        if unsafe folder.withPlatformString({ unsafe mkdir($0, 0o700) }) != 0 {
            guard errno == EEXIST else { throw Errno(rawValue: errno) }
            var status = stat()
            guard unsafe folder.withPlatformString({ unsafe lstat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw Errno.notDirectory
            }
        }
        try Self.sync(folder.removingLastComponent())
    }

    /// Returns the path of a file; nil for a name that could lead out of the folder. The queue never creates such a name.
    func path(of name: Data) -> FilePath? {
        Self.isComponent(name) ? FilePath(bytes: folder.bytes + [UInt8(ascii: "/")] + name) : nil
    }

    /// Whether a name is the name of a file in a folder, and not a path, the folder itself or its parent.
    private static func isComponent(_ name: Data) -> Bool {
        let dot = UInt8(ascii: ".")
        return !name.isEmpty && name != Data([dot]) && name != Data([dot, dot]) && !name.contains { $0 == 0 || $0 == UInt8(ascii: "/") }
    }

    private static func write(_ content: Data, to path: FilePath) throws {
        let file = try create(path)
        try file.closeAfter {
            try unsafe content.withUnsafeBytes { _ = unsafe try file.writeAll($0) }
            guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
        }
    }

    static func create(_ path: FilePath) throws -> FileDescriptor {
        try FileDescriptor.open(
            path, .writeOnly, options: [.create, .exclusiveCreate, .noFollow, .closeOnExec], permissions: [.ownerReadWrite])
    }

    static func sync(_ folder: FilePath) throws {
        let descriptor = try FileDescriptor.open(folder, .readOnly, options: [.directory, .noFollow, .closeOnExec])
        try descriptor.closeAfter {
            guard fsync(descriptor.rawValue) == 0 else { throw Errno(rawValue: errno) }
        }
    }

    /// Removes files to which no row refers any longer.
    func remove(_ names: [Data]) async {
        guard !names.isEmpty else { return }
        await BlockingIO.run(.storage) { delete(names) }
    }

    /// Deletes files. If a file can't be deleted now, the next opening of the queue removes it as an orphan.
    private func delete(_ names: [Data]) {
        guard !names.isEmpty, let descriptor = try? FileDescriptor.open(folder, .readOnly, options: [.directory, .noFollow, .closeOnExec])
        else { return }
        defer { try? descriptor.close() }
        for name in names where Self.isComponent(name) {
            unsafe (name + [0]).withUnsafeBytes { bytes in
                // The buffer holds at least the NUL, so it has a base address.
                guard let start = bytes.baseAddress else { return }
                _ = unsafe unlinkat(descriptor.rawValue, start.assumingMemoryBound(to: CChar.self), 0)
            }
        }
    }

    /// Returns the names, in hexadecimal digits, of the spool files that rows in quarantine refer to.
    private static func quarantinedNames(in db: Database) throws -> Set<String> {
        try String.fetchSet(
            db,
            sql: """
                SELECT json_extract(content, '$.source') FROM quarantined_row
                WHERE origin IN ('file', 'item') AND json_valid(content) AND json_extract(content, '$.kind') IN ('blob', 'stream', 'form')
                    AND json_type(content, '$.source') = 'text'
                """)
    }

    /// Removes files that neither an unfinished item nor a session in quarantine refers to. Blocks.
    func removeOrphans(of pool: DatabasePool) throws {
        guard let stream = try? DirectoryStream(opening: folder, followsLink: false) else { return }
        try pool.read { db in
            let quarantined = try Self.quarantinedNames(in: db)
            let statement = try db.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM file WHERE kind = 'blob' AND source = ?1 AND state <> 'completed')
                        OR EXISTS (SELECT 1 FROM item WHERE kind = 'blob' AND source = ?1)
                        OR EXISTS (SELECT 1 FROM file WHERE kind = 'form' AND source = ?1 AND state <> 'completed')
                        OR EXISTS (SELECT 1 FROM item WHERE kind = 'form' AND source = ?1)
                        OR EXISTS (SELECT 1 FROM file JOIN schedule ON schedule.session = file.session
                            WHERE \(Self.isNeededStream) AND source = ?1)
                        OR EXISTS (SELECT 1 FROM file JOIN removal ON removal.session = file.session
                            WHERE kind = 'stream' AND source = ?1 AND removal.quarantine IS NOT NULL)
                        OR EXISTS (SELECT 1 FROM file JOIN quarantine ON quarantine.session = file.session
                            WHERE kind = 'stream' AND source = ?1)
                    """)
            while let name = try stream.next() {
                let digits = name.map { String(format: "%02x", $0) }.joined()
                guard !quarantined.contains(digits), try Bool.fetchOne(statement, arguments: [Data(name)]) != true else { continue }
                delete([Data(name)])
            }
        }
    }
}

extension QueueStore {
    /// Returns the spool file of an item that a change completes. Called before the change is applied. Other changes that make spool files
    /// unnecessary add these files to ``StoreTransaction/freed``.
    static func spoolFilesFreed(by write: StoreWrite, in db: Database) throws -> [Data] {
        switch write {
        case .file(let key, let position, .completed):
            try Data.fetchAll(
                db.cachedStatement(sql: "SELECT source FROM file WHERE session = ? AND position = ? AND kind IN ('blob', 'form')"),
                arguments: [key, position])
        default:
            []
        }
    }

    /// Removes the spool files of items that were not added.
    package func discardBlobs(of items: [ItemDraft]) async {
        await spool.remove(items.filter(\.hasData).map(\.source))
    }
}
