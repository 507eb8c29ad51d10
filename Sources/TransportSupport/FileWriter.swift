public import Foundation
import Locking
public import SystemPackage
public import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// An open local file that is being received: the part of a download, until ``finish(size:modificationTime:staysPrivate:)`` gives it its name.
///
/// Nothing is written outside of the destination's root, whatever links are put in the way. Open it when the server has agreed to send the
/// file, not before, so that a refusal leaves no empty part behind. The descriptors are open until the last reference goes, so that a write
/// under way on another thread never meets a descriptor that was closed and given to another file.
public final class FileWriter: Sendable {
    /// Where the file goes, as the queue named it.
    public let destination: DownloadDestination

    /// Open for reading and writing; never closed by a user of this object.
    public let descriptor: FileDescriptor

    /// From where on bytes are wanted: what was confirmed, or the whole size if ``isInPlace``.
    public let start: Int64

    /// Whether an earlier attempt received the file completely and gave it its name, and only its end was not stored. Then
    /// ``finish(size:modificationTime:staysPrivate:)`` with the size ``start`` is all that is left to do.
    public let isInPlace: Bool

    /// Where the file is once it is complete: where it was to go, or, under ``OverwritePolicy/rename``, beside what is there.
    public var finalPath: FilePath { placed.withLock { $0 } ?? destination.path }

    private let placed = Locked<FilePath?>(nil)
    let threads: WorkerThreads
    let place: DownloadPlace
    private let schedule: Locked<SyncSchedule>

    /// Opens the part of a download, or makes a new one, and the folders that it is in.
    ///
    /// - Parameters:
    ///   - confirmed: What the attempt's checkpoint vouches for. Anything beyond is cut off, as nobody knows whether the disk has it.
    ///   - size: How many bytes the whole file has; nil if the server does not say. If the disk has no room for the rest, nothing is made.
    ///   - threads: Does everything that may block.
    /// - Throws: A ``TransferError``: of the class ``FailureClass/resumeLost`` if the part is gone or shorter; with the code
    ///   ``TransferError/Code/fileExists`` if the policy forbids to replace what is there; ``FailureClass/noSpace`` or
    ///   ``FailureClass/permanent``, naming the path, if the disk or its permissions refuse.
    public static func open(
        _ destination: DownloadDestination, from confirmed: Int64 = 0, size: Int64? = nil, on threads: WorkerThreads
    ) async throws -> FileWriter {
        try await open(destination, from: confirmed, size: size, on: threads, syncing: SyncSchedule(at: .now))
    }

    /// As ``open(_:from:size:on:)``, on the caller's thread, which may be blocked: for callbacks of a C library that own a thread.
    public static func openNow(
        _ destination: DownloadDestination, from confirmed: Int64 = 0, size: Int64? = nil, on threads: WorkerThreads
    ) throws(TransferError) -> FileWriter {
        try openNow(destination, from: confirmed, size: size, on: threads, syncing: SyncSchedule(at: .now))
    }

    private static func openNow(
        _ destination: DownloadDestination, from confirmed: Int64, size: Int64?, on threads: WorkerThreads, syncing schedule: SyncSchedule,
        _ faults: PlacingFaults = PlacingFaults()
    ) throws(TransferError) -> FileWriter {
        let place = try DownloadPlace(destination, creates: true, faults)
        let (part, isInPlace) = try place.openPart(from: confirmed, of: size)
        let writer = try FileWriter(place, part, from: confirmed, isInPlace: isInPlace, schedule, threads)
        // Of two files that fit only one at a time, the second one waits before its first byte.
        if !isInPlace, let size { try place.reserve(size, for: part) }
        return writer
    }

    package static func open(
        _ destination: DownloadDestination, from confirmed: Int64, size: Int64? = nil, on threads: WorkerThreads,
        syncing schedule: SyncSchedule, faults: PlacingFaults = PlacingFaults()
    ) async throws -> FileWriter {
        try await threads.run { try openNow(destination, from: confirmed, size: size, on: threads, syncing: schedule, faults) }
    }

    private init(
        _ place: DownloadPlace, _ part: FileDescriptor, from confirmed: Int64, isInPlace: Bool, _ schedule: SyncSchedule,
        _ threads: WorkerThreads
    ) throws(TransferError) {
        self.place = place
        self.threads = threads
        self.isInPlace = isInPlace
        destination = place.destination
        descriptor = part
        var start = confirmed
        var failure: TransferError?
        do throws(TransferError) {
            if isInPlace { start = try place.status(of: part).size } else { try place.cut(part, to: confirmed) }
        } catch {
            failure = error
        }
        self.start = start
        var schedule = schedule
        schedule.synced = start
        self.schedule = Locked(schedule)
        if let failure { throw failure }
    }

    deinit {
        // What matters was synced, and its errors were seen then.
        try? descriptor.close()
    }

    // MARK: Content

    /// Writes bytes at an offset, all of them, on one of the threads.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/noSpace`` or ``FailureClass/permanent``, naming the path.
    public func write(_ bytes: Data, at offset: Int64) async throws {
        try await threads.run { try unsafe bytes.withUnsafeBytes { unsafe try self.writeNow($0, at: offset) } }
    }

    /// As ``write(_:at:)``, on the caller's thread, which may be blocked: for callbacks of a C library that own a thread.
    public func writeNow(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TransferError) {
        var written = 0
        while written < bytes.count {
            let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
            let count = unsafe pwrite(descriptor.rawValue, rest.baseAddress, rest.count, off_t(offset) + off_t(written))
            if count < 0, errno == EINTR { continue }
            // pwrite(2) of a regular file takes at least a byte, or says why not.
            guard count > 0 else { throw .destinationUnavailable(destination.partPath, errno: count < 0 ? errno : EIO) }
            written += count
        }
    }

    // MARK: Checkpoints

    /// Up to where the file is synced: what a checkpoint may vouch for.
    public var syncedPosition: Int64 { schedule.withLock { $0.synced } }

    /// Whether 64 MiB were written since the file was last synced, or 5 s have passed. May be called on any thread, and does not wait.
    ///
    /// - Parameter position: Up to where every byte was written.
    public func isSyncDue(upTo position: Int64) -> Bool { schedule.withLock { $0.isDue(position) } }

    /// Syncs the file if 64 MiB were written since the last time, or 5 s have passed. Called after each write, before a checkpoint.
    ///
    /// - Parameter position: Up to where every byte was written.
    /// - Returns: Whether it was synced: then a checkpoint may vouch for `position`.
    /// - Throws: As ``sync(upTo:)``.
    public func syncIfDue(upTo position: Int64) async throws -> Bool {
        guard isSyncDue(upTo: position) else { return false }
        try await sync(upTo: position)
        return true
    }

    /// Syncs the file now, so that a checkpoint may vouch for the position; for the end of an attempt.
    ///
    /// - Throws: A ``TransferError`` that names the path.
    public func sync(upTo position: Int64) async throws {
        guard position > syncedPosition else { return }
        try await threads.run { try self.syncNow() }
        schedule.withLock { $0.didSync(position) }
    }

    func syncNow() throws(TransferError) {
        #if canImport(Darwin)
            let result = fsync(descriptor.rawValue)
        #else
            let result = fdatasync(descriptor.rawValue)
        #endif
        guard result == 0 else { throw .destinationUnavailable(destination.partPath, errno: errno) }
    }

    // MARK: The end

    /// Syncs the file, gives it its name as the policy says, and syncs its folder. When it returns, the file is complete and durable.
    ///
    /// - Parameters:
    ///   - size: How many bytes the file has to have.
    ///   - modificationTime: When the file changed last at the server, in nanoseconds since 1970; nil if it does not say.
    ///   - staysPrivate: Whether the file keeps the permissions of a part, which only this user may read and write, because the transport sets
    ///     others. By default the file gets those that this process gives new files.
    /// - Returns: Whether the file is in place; false if the policy left what was there.
    /// - Throws: A ``TransferError``: ``TransferError/Code/fileExists`` where nothing may be replaced; ``FailureClass/protocolViolation`` if
    ///   there are more or fewer bytes; as ``open(_:from:size:on:)`` otherwise.
    @discardableResult
    public func finish(size: Int64, modificationTime: Int64? = nil, staysPrivate: Bool = false) async throws -> Bool {
        try await threads.run {
            let written = try self.place.status(of: self.descriptor).size
            guard written == size else {
                throw TransferError(
                    .protocolViolation, .badAnswer,
                    "\(self.destination.path) has \(size) bytes at the server, but \(written) were received.")
            }
            if !self.isInPlace, !staysPrivate { self.place.publish(self.descriptor) }
            if !self.isInPlace, let modificationTime { try self.place.set(modificationTime, of: self.descriptor) }
            guard fsync(self.descriptor.rawValue) == 0 else {
                throw TransferError.destinationUnavailable(self.destination.partPath, errno: errno)
            }
            let path = try self.place.put(self.descriptor, RemoteFileState(size: size, modificationTime: modificationTime))
            self.placed.withLock { $0 = path }
            return path != nil
        }
    }

    /// Whether the policy leaves what is at the destination already, so that nothing has to be received: asked before ``open(_:from:size:on:)``.
    ///
    /// - Parameters:
    ///   - size: The size at the server; nil if it does not say.
    ///   - modificationTime: As for ``finish(size:modificationTime:staysPrivate:)``. Compared by the second if it is a whole one.
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` if the server does not tell what the policy compares.
    public static func isUpToDate(
        _ destination: DownloadDestination, size: Int64?, modificationTime: Int64?, on threads: WorkerThreads
    ) async throws -> Bool {
        guard destination.overwrite.comparesFiles else { return false }
        return try await threads.run { try isUpToDateNow(destination, size: size, modificationTime: modificationTime) }
    }

    /// As ``isUpToDate(_:size:modificationTime:on:)``, on the caller's thread, which may be blocked.
    public static func isUpToDateNow(
        _ destination: DownloadDestination, size: Int64?, modificationTime: Int64?
    ) throws(TransferError) -> Bool {
        guard destination.overwrite.comparesFiles else { return false }
        // A folder that does not exist holds no file, and is not made to find that out.
        guard let place = try DownloadPlace.existing(destination) else { return false }
        return try place.isUpToDate(RemoteFileState(size: size, modificationTime: modificationTime))
    }
}

/// When a file is synced: seldom enough to cost little, often enough to lose little.
package struct SyncSchedule: Sendable {
    private let bytes: Int64
    private let interval: Duration

    fileprivate(set) var synced: Int64 = 0
    private var time: ContinuousClock.Instant
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameters:
    ///   - bytes: After how many bytes a sync is due, however soon that is.
    ///   - interval: After how long one is due, however little was written.
    package init(
        at time: ContinuousClock.Instant, bytes: Int64 = 64 << 20, interval: Duration = .seconds(5),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.bytes = bytes
        self.interval = interval
        self.time = time
        self.now = now
    }

    /// Whether a position is far enough ahead, or late enough, that a sync is worth its cost.
    package func isDue(_ position: Int64) -> Bool {
        position > synced && (position - synced >= bytes || now() - time >= interval)
    }

    package mutating func didSync(_ position: Int64) {
        synced = max(synced, position)
        time = now()
    }
}
