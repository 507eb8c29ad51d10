public import Foundation
import Locking
import Synchronization
public import SystemPackage
public import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The open part file of a download, until ``finish(size:modificationTime:staysPrivate:permissions:)`` gives the file its final name.
///
/// A writer writes nothing outside of the destination's root, even if another process creates links there. Open a writer only after the
/// server has accepted the request; otherwise a rejection leaves an empty part file. The descriptors stay open until the last reference to
/// this object is released. A write on another thread therefore never uses a descriptor that was closed and then reused for another file.
public final class FileWriter: Sendable {
    /// The destination of the file.
    public let destination: DownloadDestination

    /// The descriptor, open for reading and writing. Don't close it.
    public let descriptor: FileDescriptor

    /// The position of the first missing byte: the confirmed position, or the size of the file if ``isInPlace``.
    public let start: Int64

    /// Whether an earlier attempt received the whole file and gave it its final name, but the queue did not store the completion. In this case, call
    /// only ``finish(size:modificationTime:staysPrivate:permissions:)``, with the size ``start``.
    public let isInPlace: Bool

    /// The path of the complete file: the destination, or another name in its folder with ``/TransferCore/OverwritePolicy/rename``.
    public var finalPath: FilePath { assignedPath.withLock { $0 } ?? destination.path }

    /// The number of bytes that this writer has written. Bytes that are written twice count twice.
    private let writtenBytes = Atomic<Int64>(0)
    private let assignedPath = Locked<FilePath?>(nil)
    let threads: WorkerThreads
    let folder: DestinationFolder
    private let schedule: Locked<SyncSchedule>
    /// The error number of a failed sync; 0 if no sync failed.
    private let syncFailure = Locked<CInt>(0)

    /// Opens the part file of a download, or creates the part file and missing folders below the root.
    ///
    /// - Parameters:
    ///   - destination: The names of the file and its part file, and the overwrite policy.
    ///   - confirmed: The number of bytes that the attempt's checkpoint covers. The writer removes later bytes from the part file, because
    ///     they may not be on disk.
    ///   - size: The size of the whole file in bytes; nil if unknown. If the disk lacks space for the remaining bytes, the call fails
    ///     before any byte is written.
    ///   - threads: Threads for blocking calls.
    /// - Throws: A ``/TransferCore/TransferError`` that names the path. Its class is ``/TransferCore/FailureClass/resumeLost`` if the part
    ///   file is gone, is too short, or has an unknown second hard link; ``/TransferCore/FailureClass/noSpace`` if the disk lacks space; and
    ///   ``/TransferCore/FailureClass/transient`` (an I/O error) or ``/TransferCore/FailureClass/permanent`` if the file can't be created or
    ///   written. Its code is ``/TransferCore/TransferError/Code/fileExists`` if the policy forbids replacing an existing file.
    public static func open(
        _ destination: DownloadDestination, from confirmed: Int64 = 0, size: Int64? = nil, on threads: WorkerThreads
    ) async throws -> FileWriter {
        try await open(destination, from: confirmed, size: size, on: threads, syncing: SyncSchedule(at: .now))
    }

    /// Like ``open(_:from:size:on:)``, but blocks the caller's thread. Intended for callbacks of a C library with its own thread.
    package static func openNow(
        _ destination: DownloadDestination, from confirmed: Int64 = 0, size: Int64? = nil, on threads: WorkerThreads
    ) throws(TransferError) -> FileWriter {
        try openNow(destination, from: confirmed, size: size, on: threads, syncing: SyncSchedule(at: .now))
    }

    private static func openNow(
        _ destination: DownloadDestination, from confirmed: Int64, size: Int64?, on threads: WorkerThreads, syncing schedule: SyncSchedule,
        _ faults: FinalNameFaults = FinalNameFaults()
    ) throws(TransferError) -> FileWriter {
        let folder = try DestinationFolder(destination, creates: true, faults)
        let (partFile, isInPlace) = try folder.openPartFile(from: confirmed, of: size)
        let writer = try FileWriter(folder, partFile, from: confirmed, isInPlace: isInPlace, schedule, threads)
        // If only one of two concurrent downloads fits on the disk, the second one then fails before its first byte.
        if !isInPlace, let size { try folder.reserve(size, for: partFile) }
        return writer
    }

    package static func open(
        _ destination: DownloadDestination, from confirmed: Int64, size: Int64? = nil, on threads: WorkerThreads,
        syncing schedule: SyncSchedule, faults: FinalNameFaults = FinalNameFaults()
    ) async throws -> FileWriter {
        try await threads.run { try openNow(destination, from: confirmed, size: size, on: threads, syncing: schedule, faults) }
    }

    private init(
        _ folder: DestinationFolder, _ partFile: FileDescriptor, from confirmed: Int64, isInPlace: Bool, _ schedule: SyncSchedule,
        _ threads: WorkerThreads
    ) throws(TransferError) {
        self.folder = folder
        self.threads = threads
        self.isInPlace = isInPlace
        destination = folder.destination
        descriptor = partFile
        var start = confirmed
        var failure: TransferError?
        do throws(TransferError) {
            if isInPlace { start = try folder.status(of: partFile).size } else { try folder.truncate(partFile, to: confirmed) }
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
        // Ignore errors of close(2): important data has already been synced, and each sync reported its errors.
        try? descriptor.close()
    }

    // MARK: Content

    /// Writes all bytes at an offset, on one of the threads.
    ///
    /// - Throws: A ``/TransferCore/TransferError`` whose message names the path, for example of the class ``/TransferCore/FailureClass/noSpace``.
    public func write(_ bytes: Data, at offset: Int64) async throws {
        try await threads.run { try unsafe bytes.withUnsafeBytes { unsafe try self.writeNow($0, at: offset) } }
    }

    /// Like ``write(_:at:)``, but blocks the caller's thread. Intended for callbacks of a C library with its own thread.
    package func writeNow(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TransferError) {
        var written = 0
        while written < bytes.count {
            let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
            let count = unsafe pwrite(descriptor.rawValue, rest.baseAddress, rest.count, off_t(offset) + off_t(written))
            if count < 0, errno == EINTR { continue }
            // pwrite(2) to a regular file writes at least one byte or fails.
            guard count > 0 else { throw .destinationUnavailable(destination.partPath, errno: count < 0 ? errno : EIO) }
            written += count
        }
        writtenBytes.add(Int64(written), ordering: .relaxed)
    }

    // MARK: Checkpoints

    /// The position up to which the file is synced. A checkpoint must not cover later bytes.
    public var syncedPosition: Int64 { schedule.withLock { $0.synced } }

    /// Whether a sync is due: 64 MiB were written since the last sync, or 5 s have passed and any bytes were written. This method does not
    /// block. Call it on any thread.
    ///
    /// - Parameter position: The position up to which all bytes are written.
    package func isSyncDue(upTo position: Int64) -> Bool { schedule.withLock { $0.isDue(position) } }

    /// Syncs the file if 64 MiB were written since the last sync, or if 5 s have passed and any bytes were written. Call this method after
    /// each write, before a checkpoint.
    ///
    /// - Parameter position: The position up to which all bytes are written.
    /// - Returns: Whether the file was synced. If so, a checkpoint may cover `position`.
    /// - Throws: The same errors as ``sync(upTo:)``.
    public func syncIfDue(upTo position: Int64) async throws -> Bool {
        guard isSyncDue(upTo: position) else { return false }
        try await sync(upTo: position)
        return true
    }

    /// Syncs the file, for example at the end of an attempt. A checkpoint may then cover the position. Call this method from one task at a time.
    ///
    /// After a failed sync, all later syncs of this writer fail, and a checkpoint must not cover more than ``syncedPosition``. The system reports
    /// lost bytes only once, so a later success would prove nothing.
    ///
    /// - Throws: A ``/TransferCore/TransferError`` that names the path.
    public func sync(upTo position: Int64) async throws {
        guard position > syncedPosition else { return }
        try await threads.run { try self.syncContent() }
        schedule.withLock { $0.didSync(position) }
    }

    private func syncContent() throws(TransferError) {
        try sync { descriptor in
            #if canImport(Darwin)
                fsync(descriptor)
            #else
                fdatasync(descriptor)
            #endif
        }
    }

    /// Syncs the file, unless an earlier sync failed.
    ///
    /// - Parameter system: The system function that syncs a descriptor.
    private func sync(_ system: (CInt) -> CInt) throws(TransferError) {
        let written = writtenBytes.load(ordering: .relaxed)
        var code = syncFailure.withLock { $0 }
        if code == 0 { code = folder.faults.syncError() }
        if code == 0, system(descriptor.rawValue) != 0 { code = errno }
        guard code != 0 else { return folder.recordStored(written) }
        syncFailure.withLock { $0 = code }
        throw .destinationUnavailable(destination.partPath, errno: code)
    }

    // MARK: The end

    /// Syncs the file, gives the file its final name according to the policy, and syncs the folder. Afterwards the file is complete and durable.
    ///
    /// - Parameters:
    ///   - size: The expected size in bytes.
    ///   - modificationTime: The modification time of the file on the server, in nanoseconds since 1970; nil if unknown. The local file
    ///     gets the same time.
    ///   - staysPrivate: Whether the file keeps the permissions of a part file, which only this user can read and write. Use true if the transport
    ///     sets the permissions itself. By default, the file gets the permissions that this process gives new files, limited by
    ///     `permissions`.
    ///   - permissions: The file's permissions on the server (inode(7)), if known. Other users get only permissions that they also have on the
    ///     server.
    /// - Returns: Whether the file has its final name; false if the policy kept an existing file.
    /// - Throws: A ``/TransferCore/TransferError``: ``/TransferCore/TransferError/Code/fileExists`` if an existing file must not be replaced, or
    ///   ``/TransferCore/FailureClass/protocolViolation`` if the number of bytes differs. Also the error of an earlier failed sync, and the errors of
    ///   ``open(_:from:size:on:)`` and ``isUpToDate(_:size:modificationTime:on:)``.
    @discardableResult
    public func finish(
        size: Int64, modificationTime: Int64? = nil, staysPrivate: Bool = false, permissions: UInt32? = nil
    ) async throws -> Bool {
        try await threads.run {
            let written = try self.folder.status(of: self.descriptor).size
            guard written == size else {
                throw TransferError(
                    .protocolViolation, .invalidResponse,
                    "Received \(written) bytes of \(self.destination.path), which has \(size) bytes on the server.")
            }
            if !self.isInPlace, !staysPrivate { self.folder.setFinalPermissions(of: self.descriptor, within: permissions) }
            if !self.isInPlace, let modificationTime { try self.folder.setModificationTime(modificationTime, of: self.descriptor) }
            try self.sync { fsync($0) }
            let path = try self.folder.moveToFinalName(self.descriptor, RemoteFileState(size: size, modificationTime: modificationTime))
            self.assignedPath.withLock { $0 = path }
            self.folder.endPromise()
            return path != nil
        }
    }

    /// Whether the policy keeps an existing file, which makes the download unnecessary. Call this method before ``open(_:from:size:on:)``.
    ///
    /// - Parameters:
    ///   - destination: The name of the file, and the overwrite policy.
    ///   - size: The size on the server in bytes; nil if unknown.
    ///   - modificationTime: The modification time on the server, in nanoseconds since 1970; nil if unknown. If it has no fraction, the
    ///     fraction of the local time is ignored.
    ///   - threads: Threads for blocking calls.
    /// - Throws: A ``/TransferCore/TransferError``. Its class is ``/TransferCore/FailureClass/unsupported`` if the policy is
    ///   ``/TransferCore/OverwritePolicy/different`` and the size is unknown, or ``/TransferCore/OverwritePolicy/newer`` and the
    ///   modification time is unknown.
    public static func isUpToDate(
        _ destination: DownloadDestination, size: Int64?, modificationTime: Int64?, on threads: WorkerThreads
    ) async throws -> Bool {
        guard destination.overwrite.comparesFiles else { return false }
        return try await threads.run { try isUpToDateNow(destination, size: size, modificationTime: modificationTime) }
    }

    /// Like ``isUpToDate(_:size:modificationTime:on:)``, but blocks the caller's thread.
    package static func isUpToDateNow(
        _ destination: DownloadDestination, size: Int64?, modificationTime: Int64?
    ) throws(TransferError) -> Bool {
        guard destination.overwrite.comparesFiles else { return false }
        // A missing folder contains no existing file, so don't create the folder.
        guard let folder = try DestinationFolder.existing(destination) else { return false }
        return try folder.isUpToDate(RemoteFileState(size: size, modificationTime: modificationTime))
    }
}

/// Decides when to sync a file: rarely enough to be cheap, and often enough to lose few bytes.
package struct SyncSchedule: Sendable {
    private let bytes: Int64
    private let interval: Duration

    /// The position up to which the file is synced, in bytes.
    fileprivate(set) var synced: Int64 = 0
    /// The time of the last sync.
    private var time: ContinuousClock.Instant
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameters:
    ///   - time: The time of the last sync, or of the start.
    ///   - bytes: The number of bytes after which a sync is due, regardless of the time.
    ///   - interval: The time after which a sync is due if any bytes were written since the last sync.
    package init(
        at time: ContinuousClock.Instant, bytes: Int64 = 64 << 20, interval: Duration = .seconds(5),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.bytes = bytes
        self.interval = interval
        self.time = time
        self.now = now
    }

    /// Whether a sync is due at a position.
    package func isDue(_ position: Int64) -> Bool {
        position > synced && (position - synced >= bytes || now() - time >= interval)
    }

    package mutating func didSync(_ position: Int64) {
        synced = max(synced, position)
        time = now()
    }
}
