import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The files that streams go through. One that may not be written to any more has all of its stream.
extension Spool {
    /// The condition on a row of `file`, joined with `schedule`, that says that somebody may want the bytes of its stream.
    static let isLeftStream = "file.kind = 'stream' AND file.state = 'pending' AND schedule.state <> 'cancelled'"

    /// A new name, which also tells until when all that was written to the file is there: until the machine starts anew.
    static func nameOfStream() -> Data {
        Data("\(UUID().uuidString)-\(SourceIdentity.currentBootID)".utf8)
    }

    static func wasMadeInThisBoot(_ name: Data) -> Bool {
        let boot = SourceIdentity.currentBootID
        return !boot.isEmpty && String(decoding: name, as: UTF8.self).hasSuffix("-\(boot)")
    }

    /// Makes an empty file, and the folder if need be. Blocks.
    static func make(_ path: FilePath) throws -> FileDescriptor {
        try Spool(folder: path.removingLastComponent()).makeFolder()
        return try FileDescriptor.open(
            path, .writeOnly, options: [.create, .exclusiveCreate, .noFollow, .closeOnExec], permissions: [.ownerReadWrite])
    }

    /// Opens the file of an earlier process, to be continued at an offset. Blocks.
    static func reopen(_ path: FilePath, at offset: Int64) throws -> FileDescriptor {
        let file = try FileDescriptor.open(path, .writeOnly, options: [.noFollow, .closeOnExec])
        // What is missing before the offset was confirmed, and is not read any more.
        guard ftruncate(file.rawValue, off_t(offset)) == 0 else {
            let error = Errno(rawValue: errno)
            try? file.close()
            throw error
        }
        return file
    }

    /// Makes a whole stream durable, and then the mark that says that it is whole. Blocks.
    static func seal(_ file: FileDescriptor, in folder: FilePath) throws {
        guard fsync(file.rawValue) == 0, fchmod(file.rawValue, S_IRUSR) == 0, fsync(file.rawValue) == 0 else {
            throw Errno(rawValue: errno)
        }
        try sync(folder)
    }

    /// What there is of a stream, and whether that is all. Blocks.
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
