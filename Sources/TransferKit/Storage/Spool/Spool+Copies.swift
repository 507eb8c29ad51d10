import Foundation
import Locking
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Copies of local files; see ``TransferItem/keepsCopy``. A copy has mode 0600, so its name contains the permissions of its source.
extension Spool {
    private static let bufferSize = 1 << 20

    /// Returns a new file name for a copy, which ends with the permissions of the source in octal digits.
    ///
    /// - Parameters:
    ///   - original: The open source.
    ///   - source: The path of the source, for errors only.
    static func nameOfCopy(of original: FileDescriptor, _ source: FilePath) throws(TransferError) -> String {
        var status = stat()
        guard unsafe fstat(original.rawValue, &status) == 0 else { throw .sourceUnavailable(source, errno: errno) }
        return "\(UUID().uuidString).\(String(status.st_mode & 0o777, radix: 8))"
    }

    /// Returns the permissions that the source of a copy had; nil if the file with that name is not a copy.
    static func permissionsOfSource(ofCopy name: String) -> FilePermissions? {
        let components = name.split(separator: ".", omittingEmptySubsequences: false)
        guard components.count == 2, let mode = mode_t(components[1], radix: 8), mode <= 0o777 else { return nil }
        return FilePermissions(rawValue: mode)
    }

    /// Copies a file, and syncs the copy to disk. Blocks.
    ///
    /// - Parameters:
    ///   - original: The open file.
    ///   - source: The path of the file, for errors only.
    ///   - size: The expected size of the file in bytes.
    ///   - cancellation: Stops the copy between two blocks.
    /// - Throws: A ``TransferError`` if the file can't be read, or has changed; ``QueueError`` with the code `storageUnavailable` if the disk lacks
    ///   the space for the copy; an `Errno` if the copy can't be written; `CancellationError`.
    static func copy(
        _ original: FileDescriptor, _ source: FilePath, size: Int64, to path: FilePath, _ cancellation: CopyCancellation
    ) throws {
        let before = try SourceIdentity(of: original, path: source)
        let file = try create(path)
        try file.closeAfter {
            if !clone(original, to: file) {
                try requireSpace(for: original, source, in: path.removingLastComponent())
                try copyBytes(of: original, source, atMost: size, to: file, cancellation)
            }
            let after = try SourceIdentity(of: original, path: source)
            guard after == before, after.size == size, try SourceIdentity(of: file, path: path).size == size else {
                throw TransferError(.sourceChanged, .sourceChanged, "\(source) changed while it was being copied. Enqueue it again.")
            }
            try setModificationTime(of: file, after.modificationTime)
            guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
        }
    }

    /// Opens a file to copy. Blocks.
    static func open(_ source: FilePath) throws(TransferError) -> FileDescriptor {
        do {
            // Non-blocking, so that this call does not hang if another process has replaced the file with a FIFO.
            return try FileDescriptor.open(source, .readOnly, options: [.nonBlocking, .closeOnExec])
        } catch let error as Errno {
            throw .sourceUnavailable(source, errno: error.rawValue)
        } catch {
            throw .sourceUnavailable(source, errno: EIO)
        }
    }

    /// Checks the free space before the first byte, so that a copy that can't be completed does not fill the disk. The holes of a sparse file need no
    /// space.
    private static func requireSpace(for original: FileDescriptor, _ source: FilePath, in folder: FilePath) throws {
        var status = stat()
        guard unsafe fstat(original.rawValue, &status) == 0 else { throw TransferError.sourceUnavailable(source, errno: errno) }
        // The unit of `st_blocks` is 512 bytes (inode(7)).
        let (allocated, overflow) = Int64(clamping: status.st_blocks).multipliedReportingOverflow(by: 512)
        let needed = overflow ? Int64(status.st_size) : min(Int64(status.st_size), allocated)
        guard let free = DiskSpace.free(at: folder), free < needed else { return }
        throw QueueError(
            .storageUnavailable,
            "The copy of \(source) needs \(needed) bytes, but the disk with \(folder) has \(free) free. Free some space, or enqueue the file without "
                + "a copy.")
    }

    /// Copies the bytes of a file, in blocks of at most 1 MiB. Blocks of zeros become holes in the copy. Stops after the block that contains the
    /// first byte beyond `size`, so that a growing file does not fill the disk.
    ///
    /// Reads every byte, although lseek(2) can find holes. Some file systems report a hole where a program has just written data, so the copy would
    /// contain zeros instead of this data.
    private static func copyBytes(
        of original: FileDescriptor, _ source: FilePath, atMost size: Int64, to file: FileDescriptor, _ cancellation: CopyCancellation
    ) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 1)
        defer { unsafe buffer.deallocate() }
        var offset: Int64 = 0
        while offset <= size {
            try cancellation.check()
            let count: Int
            do {
                count = unsafe try original.read(fromAbsoluteOffset: offset, into: buffer)
            } catch let error as Errno {
                throw TransferError.sourceUnavailable(source, errno: error.rawValue)
            }
            guard count > 0 else { break }
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count])
            if unsafe !isZero(bytes) { unsafe try file.writeAll(toAbsoluteOffset: offset, bytes) }
            offset += Int64(count)
        }
        // The file can end with a hole.
        guard ftruncate(file.rawValue, off_t(offset)) == 0 else { throw Errno(rawValue: errno) }
    }

    private static func isZero(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // If the first byte is 0 and each byte equals the next byte, all bytes are 0.
        guard let start = bytes.baseAddress, unsafe bytes[0] == 0 else { return false }
        return unsafe memcmp(start, start + 1, bytes.count - 1) == 0
    }

    /// Makes the new file share the blocks of the source, if possible (ioctl_ficlone(2)).
    ///
    /// - Returns: Whether the files share blocks. False if this machine or the file system can't share blocks, or if the files are on different file
    ///   systems. In this case, the new file stays empty.
    private static func clone(_ source: FileDescriptor, to file: FileDescriptor) -> Bool {
        #if os(Linux) && (arch(x86_64) || arch(arm64))
            // FICLONE of linux/fs.h: _IOW(0x94, 9, int).
            ioctl(file.rawValue, 0x4004_9409, source.rawValue) == 0
        #else
            false
        #endif
    }

    /// Gives a copy the modification time of its source.
    ///
    /// - Parameter time: The time in nanoseconds since 1970.
    private static func setModificationTime(of file: FileDescriptor, _ time: Int64) throws {
        let (seconds, nanoseconds) = time.quotientAndRemainder(dividingBy: 1_000_000_000)
        var modified = timespec()
        // The nanoseconds must not be negative, even before 1970.
        modified.tv_sec = nanoseconds < 0 ? Int(seconds) - 1 : Int(seconds)
        modified.tv_nsec = nanoseconds < 0 ? Int(nanoseconds) + 1_000_000_000 : Int(nanoseconds)
        let times = [modified, modified]
        guard unsafe futimens(file.rawValue, times) == 0 else { throw Errno(rawValue: errno) }
    }
}

/// Passes the cancellation of a task to the thread that makes copies for the task. The thread runs outside the task, so `Task.isCancelled` is
/// always false there.
final class CopyCancellation: Sendable {
    private let isCancelled = Locked(false)

    func check() throws(CancellationError) {
        if isCancelled.withLock({ $0 }) { throw CancellationError() }
    }

    /// Runs a body, and stops its copies when the task is cancelled.
    static func run<Value: Sendable>(_ body: @Sendable (CopyCancellation) async throws -> Value) async throws -> Value {
        let cancellation = CopyCancellation()
        return try await withTaskCancellationHandler {
            try await body(cancellation)
        } onCancel: {
            cancellation.isCancelled.withLock { $0 = true }
        }
    }
}
