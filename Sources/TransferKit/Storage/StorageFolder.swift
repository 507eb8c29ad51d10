import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The folder that a queue is stored in.
enum StorageFolder {
    /// Makes the folder, for its owner alone: upload URLs in the store are capabilities.
    static func prepare(_ folder: FilePath) throws(QueueError) {
        var made = FilePath(root: folder.root)
        for component in folder.components {
            made.append(component)
            let mode: mode_t = made.components.count == folder.components.count ? 0o700 : 0o777
            guard unsafe made.withPlatformString({ unsafe mkdir($0, mode) }) != 0, errno != EEXIST else { continue }
            // A parent that exists may be unwritable, or on a read-only file system, which mkdir(2) may tell before EEXIST.
            let code = errno
            var status = stat()
            if unsafe made.withPlatformString({ unsafe stat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR { continue }
            throw QueueError(
                .storageUnavailable,
                "The storage folder \(folder) can't be made: \(Errno(rawValue: code)). Choose another, or mend its permissions.")
        }
        guard unsafe folder.withPlatformString({ unsafe access($0, R_OK | W_OK | X_OK) }) == 0 else {
            throw QueueError(
                .storageUnavailable,
                "The storage folder \(folder) can't be used: \(Errno(rawValue: errno)). The queue needs to read and write there.")
        }
    }

    /// Looks into the database file's header (sqlite.org/fileformat.html, section 1.3) before SQLite may change anything.
    static func refuseNewerVersion(_ path: FilePath) throws(QueueError) {
        guard let descriptor = try? FileDescriptor.open(path, .readOnly) else { return }
        defer { try? descriptor.close() }
        var header = [UInt8](repeating: 0, count: 100)
        guard let count = try? unsafe header.withUnsafeMutableBytes({ unsafe try descriptor.read(into: $0) }), count == 100 else { return }
        let version = header[60..<64].reduce(Int32(0)) { $0 << 8 | Int32($1) }
        guard version <= Migrations.version else { throw tooNew(path, version) }
    }

    static func tooNew(_ path: FilePath, _ version: Int32) -> QueueError {
        QueueError(
            .storageTooNew,
            "The store \(path) has schema \(version), which a newer version of this software wrote; this one knows schema \(Migrations.version). Update, or use another folder."
        )
    }
}
