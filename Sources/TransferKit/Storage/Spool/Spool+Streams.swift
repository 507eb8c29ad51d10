import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The spool files of streams. A file without write permission contains all bytes of its stream.
extension Spool {
    /// The condition on a row of `file`, joined with `schedule`, under which the bytes of its stream can still be needed.
    static let isLeftStream = "file.kind = 'stream' AND file.state = 'pending' AND schedule.state <> 'cancelled'"

    /// Returns a new name. It contains the boot ID, because unsynced bytes of the file may be lost when the machine restarts.
    static func nameOfStream() -> Data {
        Data("\(UUID().uuidString)-\(SourceIdentity.currentBootID)".utf8)
    }

    static func wasMadeInThisBoot(_ name: Data) -> Bool {
        let boot = SourceIdentity.currentBootID
        return !boot.isEmpty && String(decoding: name, as: UTF8.self).hasSuffix("-\(boot)")
    }

    /// Creates an empty file, and the folder if necessary. Blocks.
    static func make(_ path: FilePath) throws -> FileDescriptor {
        try Spool(folder: path.removingLastComponent()).makeFolder()
        return try FileDescriptor.open(
            path, .writeOnly, options: [.create, .exclusiveCreate, .noFollow, .closeOnExec], permissions: [.ownerReadWrite])
    }

    /// Opens the file of an earlier process to continue it at an offset. Blocks.
    static func reopen(_ path: FilePath, at offset: Int64) throws -> FileDescriptor {
        let file = try FileDescriptor.open(path, .writeOnly, options: [.noFollow, .closeOnExec])
        // Missing bytes before the offset were confirmed, and are not read again.
        guard ftruncate(file.rawValue, off_t(offset)) == 0 else {
            let error = Errno(rawValue: errno)
            try? file.close()
            throw error
        }
        return file
    }

    /// Makes a complete stream durable, and then its completion mark. Blocks.
    static func seal(_ file: FileDescriptor, in folder: FilePath) throws {
        guard fsync(file.rawValue) == 0, fchmod(file.rawValue, S_IRUSR) == 0, fsync(file.rawValue) == 0 else {
            throw Errno(rawValue: errno)
        }
        try sync(folder)
    }

    /// Returns the size of a stream's file, and whether the stream is complete. Blocks.
    func sizeOfStream(_ name: Data) -> (Int64?, isWhole: Bool) {
        var found = stat()
        guard let path = path(of: name), unsafe path.withPlatformString({ unsafe lstat($0, &found) }) == 0,
            found.st_mode & S_IFMT == S_IFREG
        else {
            return (nil, false)
        }
        return (Int64(found.st_size), found.st_mode & S_IWUSR == 0)
    }
}
