import Foundation
import Locking
import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The revision of the last event that a hook has handled, in a file of the storage folder.
///
/// A process locks the file, so that only one process at a time runs the hook. The system releases the lock when the process ends.
final class HookPosition: Sendable {
    /// The number of digits of the largest revision. Revisions are padded to this length in the file, so each write replaces the whole
    /// earlier revision.
    private static let digits = 20

    private let path: FilePath
    private let file: FileDescriptor
    private let stored: Locked<UInt64?>

    /// The stored revision; nil if the hook has never run.
    var revision: UInt64? { stored.withLock { $0 } }

    /// Opens or creates the file, and locks it. Blocks.
    ///
    /// - Throws: A `CommandFailure` if another process has locked the file, or the file does not contain a revision; or the error of the file system.
    init(_ path: FilePath) throws {
        self.path = path
        file = try StorageFolder.open(path, .readWrite, options: .create)
        stored = Locked(nil)
        guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else {
            throw CommandFailure(
                .rejected, "Another process runs this hook (\(path) is locked). Stop that process, or choose another name with --hook.")
        }
        var bytes = [UInt8](repeating: 0, count: Self.digits + 2)
        let count = try unsafe bytes.withUnsafeMutableBytes { unsafe try file.read(fromAbsoluteOffset: 0, into: $0) }
        let text = String(decoding: bytes.prefix(count), as: UTF8.self)
        guard !text.isEmpty else {
            // Sync the folder, so that the name of the new file is durable before the first revision.
            let folder = try FileDescriptor.open(path.removingLastComponent(), .readOnly, options: [.directory, .closeOnExec])
            try folder.closeAfter { try Self.sync(folder) }
            return
        }
        guard text.utf8.count == Self.digits + 1, let revision = UInt64(text.dropLast()) else {
            throw CommandFailure(.storage, "\(path) does not contain a revision. Remove the file to start the hook with new events.")
        }
        stored.withLock { $0 = revision }
    }

    deinit { try? file.close() }

    /// Stores a revision, and returns when it is durable. Blocks.
    ///
    /// - Throws: A `CommandFailure` if the file can't be written.
    func store(_ revision: UInt64) throws {
        let number = String(revision)
        let text = String(repeating: "0", count: Self.digits - number.count) + number + "\n"
        do {
            let count = try unsafe Array(text.utf8).withUnsafeBytes { unsafe try file.write(toAbsoluteOffset: 0, $0) }
            guard count == text.utf8.count else { throw Errno.ioError }
            try Self.sync(file)
        } catch {
            throw CommandFailure(.storage, "Cannot write \(path): \(error).")
        }
        stored.withLock { $0 = revision }
    }

    private static func sync(_ descriptor: FileDescriptor) throws {
        guard fsync(descriptor.rawValue) == 0 else { throw Errno(rawValue: errno) }
    }
}
