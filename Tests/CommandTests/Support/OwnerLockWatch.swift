import Foundation
import Glibc
import SystemPackage
import TransferCore

/// Detects that another process opens the lock file of a storage folder (inotify(7)).
///
/// Reading `/proc` is not an alternative. `transferq run` is not dumpable (prctl(2)), and only root may see the open files of such a
/// process.
final class OwnerLockWatch: Sendable {
    private let events: FileDescriptor

    /// Starts watching. The process that owns the queue must already have opened the lock file.
    init(store: FilePath) throws {
        let descriptor = inotify_init1(CInt(IN_CLOEXEC))
        guard descriptor >= 0 else { throw Errno(rawValue: errno) }
        events = FileDescriptor(rawValue: descriptor)
        let watch = unsafe store.appending("owner.lock").withPlatformString { unsafe inotify_add_watch(descriptor, $0, UInt32(IN_OPEN)) }
        guard watch >= 0 else { throw Errno(rawValue: errno) }
    }

    deinit { try? events.close() }

    /// Returns once another process has opened the lock file. Blocks.
    func waitForOpening() throws {
        var event = [UInt8](repeating: 0, count: 4096)
        _ = try unsafe event.withUnsafeMutableBytes { unsafe try events.read(into: $0) }
    }

    /// Waits like ``waitForOpening()``, but on a separate thread.
    func waitForOpeningAsync() async throws {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try self.waitForOpening() }) }
        }
    }
}
