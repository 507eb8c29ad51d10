import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The spool files of streams. A file loses its write permission once it contains all bytes of its stream.
extension Spool {
    /// An SQL condition for rows of `file`, joined with `schedule`: the row is a stream whose bytes may still be needed.
    static let isNeededStream = "file.kind = 'stream' AND file.state = 'pending' AND schedule.state <> 'cancelled'"

    /// Returns a new file name for a stream. The name contains the boot ID, because unsynced bytes of the file may be lost when the machine
    /// restarts.
    static func nameOfStream() -> Data {
        Data("\(UUID().uuidString)-\(SourceIdentity.currentBootID)".utf8)
    }

    /// Returns whether the file with a name was created since the machine started. If not, unsynced bytes of the file may have been lost.
    static func wasCreatedSinceBoot(_ name: Data) -> Bool {
        let boot = SourceIdentity.currentBootID
        return !boot.isEmpty && String(decoding: name, as: UTF8.self).hasSuffix("-\(boot)")
    }

    /// Creates an empty file. If the spool folder does not exist, creates the folder first. Blocks.
    static func make(_ path: FilePath) throws -> FileDescriptor {
        try Spool(folder: path.removingLastComponent()).makeFolder()
        return try create(path)
    }

    /// Opens a file of an earlier process to continue the stream at an offset. Blocks.
    static func reopen(_ path: FilePath, at offset: Int64) throws -> FileDescriptor {
        let file = try FileDescriptor.open(path, .writeOnly, options: [.noFollow, .closeOnExec])
        // If bytes before the offset are missing, the server has confirmed them, so no attempt reads them again.
        guard ftruncate(file.rawValue, off_t(offset)) == 0 else {
            let error = Errno(rawValue: errno)
            try? file.close()
            throw error
        }
        return file
    }

    /// Makes a complete stream durable. Then marks the file as complete by removing its write permission, and makes the mark durable. Blocks.
    static func seal(_ file: FileDescriptor, in folder: FilePath) throws {
        guard fsync(file.rawValue) == 0, fchmod(file.rawValue, S_IRUSR) == 0, fsync(file.rawValue) == 0 else {
            throw Errno(rawValue: errno)
        }
        try sync(folder)
    }

    /// Returns the size of a stream's file, and whether the stream is complete. The size is nil if there is no regular file with that name. Blocks.
    func sizeOfStream(_ name: Data) -> (Int64?, isComplete: Bool) {
        var found = stat()
        guard let path = path(of: name), unsafe path.withPlatformString({ unsafe lstat($0, &found) }) == 0,
            found.st_mode & S_IFMT == S_IFREG
        else {
            return (nil, false)
        }
        return (Int64(found.st_size), found.st_mode & S_IWUSR == 0)
    }
}
