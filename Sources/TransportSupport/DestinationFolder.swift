import Foundation
import Locking
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The properties of a remote file that decide whether it replaces a local file.
struct RemoteFileState: Sendable {
    var size: Int64?
    /// Nanoseconds since 1970.
    var modificationTime: Int64?
}

/// The open folder that contains the part file and the final file of a download. All methods block.
final class DestinationFolder: Sendable {
    struct Status {
        var size: Int64
        /// The number of bytes in the file's disk blocks, which can exceed the file's size.
        var allocated: Int64
        /// Nanoseconds since 1970.
        var modificationTime: Int64
        var isRegular: Bool
        var isFolder: Bool
        var links: Int
        /// The device and inode numbers.
        var identity: [UInt64]
    }

    let destination: DownloadDestination
    let folder: FileDescriptor
    /// The final name in the folder.
    let name: FilePath
    /// The name of the part file in the folder.
    let partName: FilePath
    let faults: FinalNameFaults
    /// The space promised to this download; nil if the space is reserved on the disk, or the download needs none.
    private let promise = Locked<PromisedSpace.Promise?>(nil)

    /// - Parameter creates: Whether to create missing folders.
    init(_ destination: DownloadDestination, creates: Bool, _ faults: FinalNameFaults = FinalNameFaults()) throws(TransferError) {
        self.destination = destination
        self.faults = faults
        guard let component = destination.partName.lastComponent, component.kind == .regular,
            destination.partName.removingLastComponent() == destination.name.removingLastComponent()
        else {
            throw TransferError(
                .permanent, .internalFailure, "The part file \(destination.partName) is not in the folder of \(destination.name).")
        }
        partName = FilePath(root: nil, components: component)
        (folder, name) = try ConfinedFolder.open(destination.root, parentOf: destination.name, creates: creates)
    }

    /// Opens the folder of a download. Returns nil if the folder does not exist.
    static func existing(_ destination: DownloadDestination) throws(TransferError) -> DestinationFolder? {
        do throws(TransferError) {
            return try DestinationFolder(destination, creates: false)
        } catch {
            guard error.code == .noSuchFile else { throw error }
            return nil
        }
    }

    deinit {
        try? folder.close()
    }

    // MARK: The part file

    /// Opens the existing part file, or creates a new one.
    ///
    /// - Parameters:
    ///   - confirmed: The number of bytes that the checkpoint covers; 0 without a checkpoint.
    ///   - size: The size of the whole file in bytes; nil if unknown.
    /// - Returns: The part file, and whether it already has its final name.
    /// - Throws: A ``TransferError``; see ``FileWriter/open(_:from:size:on:)``.
    func openPartFile(from confirmed: Int64, of size: Int64?) throws(TransferError) -> (FileDescriptor, isInPlace: Bool) {
        if let found = try openExistingPartFile() {
            do throws(TransferError) {
                let status = try status(of: found)
                if try existingFinalName(status) != nil { return (found, true) }
                try removePlaceholder(of: status)
                try requireReplaceable(try self.status(of: name))
                if confirmed > 0 {
                    guard try !hasOtherName(status) else {
                        try unlink(partName)
                        throw resumeLost()
                    }
                    guard status.isRegular, status.size >= confirmed else { throw resumeLost() }
                    try requireSpace((size ?? 0) - max(confirmed, status.allocated))
                    return (found, false)
                }
            } catch {
                try? found.close()
                throw error
            }
            try? found.close()
        } else if let renamed = try openRenamedFile() {
            return (renamed, true)
        }
        try requireReplaceable(try status(of: name))
        guard confirmed == 0 else { throw resumeLost() }
        try unlink(partName)
        try removeNote()
        try requireSpace(size ?? 0)
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = unsafe partName.withPlatformString { unsafe openat(folder.rawValue, $0, flags, Self.privateMode) }
        guard descriptor >= 0 else { throw .destinationUnavailable(destination.partPath, errno: errno) }
        return (FileDescriptor(rawValue: descriptor), false)
    }

    /// Whether the part file has another hard link, whose name is not one of this download's names.
    ///
    /// The user may have moved the complete file before the queue stored its completion. In this case, a download must not write to the
    /// moved file.
    private func hasOtherName(_ partStatus: Status) throws(TransferError) -> Bool {
        // The temporary name can remain if a process was killed while it replaced a file.
        let hasTemporaryLink = try status(of: DownloadDestination.temporaryName(of: partName))?.identity == partStatus.identity
        return partStatus.links > (hasTemporaryLink ? 2 : 1)
    }

    /// Opens the file with the part file's name. Returns nil if there is no such file, or if it can't be a part file.
    private func openExistingPartFile() throws(TransferError) -> FileDescriptor? {
        // Without O_NONBLOCK, opening a FIFO of that name would wait for its other end (open(2)).
        let flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        var descriptor = unsafe partName.withPlatformString { unsafe openat(folder.rawValue, $0, O_RDWR | flags) }
        if descriptor < 0, errno == EACCES {
            // A complete file keeps the part file's name until its completion is stored, and may already have lost write permission.
            descriptor = unsafe partName.withPlatformString { unsafe openat(folder.rawValue, $0, O_RDONLY | flags) }
        }
        if descriptor >= 0 { return FileDescriptor(rawValue: descriptor) }
        switch errno {
        case ENOENT, ELOOP, ENXIO, EISDIR: return nil
        default: throw .destinationUnavailable(destination.partPath, errno: errno)
        }
    }

    private func requireReplaceable(_ final: Status?) throws(TransferError) {
        guard let final else { return }
        if destination.overwrite == .never { throw .fileExists(destination.path) }
        if destination.overwrite == .skip || destination.overwrite == .rename { return }
        if final.isFolder { throw .destinationUnavailable(destination.path, errno: EISDIR) }
    }

    /// Promises space to this download before its first byte, so that a file that can't be completed does not fill the disk. Space that earlier
    /// downloads of this process still need does not count as free.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/noSpace`` if the free space does not suffice.
    private func requireSpace(_ bytes: Int64) throws(TransferError) {
        guard bytes > 0 else { return }
        let (promise, free, promised) = try (faults.promisedSpace ?? .shared).promise(bytes, on: try device(), free: freeSpace)
        if let promise { return self.promise.withLock { $0 = promise } }
        let promisedText = promised > 0 ? ", and other downloads need \(promised.sizeText)" : ""
        throw TransferError(
            .noSpace, .diskFull,
            "\(destination.path) needs \(bytes.sizeText) more, but its disk has \(free.sizeText) free\(promisedText). Free some space.")
    }

    private func device() throws(TransferError) -> UInt64 {
        var found = stat()
        guard unsafe fstat(folder.rawValue, &found) == 0 else { throw .destinationUnavailable(destination.partPath, errno: errno) }
        return UInt64(bitPattern: Int64(found.st_dev))
    }

    private func freeSpace() throws(TransferError) -> Int64 {
        if let free = faults.freeSpace { return free() }
        var found = statvfs()
        guard unsafe fstatvfs(folder.rawValue, &found) == 0 else { throw .destinationUnavailable(destination.partPath, errno: errno) }
        let free = UInt64(found.f_bavail).multipliedReportingOverflow(by: UInt64(found.f_frsize))
        return free.overflow ? .max : Int64(clamping: free.partialValue)
    }

    /// Reduces the promised space by the bytes that are on the disk.
    ///
    /// - Parameter bytes: The total number of bytes that this download has written and synced.
    func recordStored(_ bytes: Int64) {
        promise.withLock { $0 }?.recordStored(bytes)
    }

    /// Ends the promise of space, because this download needs no more free space.
    func endPromise() {
        // Returns the promise from the closure, so that its release, which takes another lock, happens after this lock was released.
        _ = promise.withLock { promise in
            defer { promise = nil }
            return promise
        }
    }

    /// The maximum size in bytes of a small file. The writer reserves no space for small files, because the additional system call would
    /// slow down a download of many small files.
    private static let smallSize: Int64 = 1 << 20

    func reserve(_ size: Int64, for partFile: FileDescriptor) throws(TransferError) {
        guard size > Self.smallSize, !faults.refusesReservations else { return }
        do throws(Errno) {
            // The free space no longer includes the reserved blocks, so the promise must not include them either.
            if try FileBlocks.reserve(partFile, size) { endPromise() }
        } catch {
            throw TransferError(
                .noSpace, .diskFull,
                "\(destination.path) needs \(size) bytes, but other files use the rest of its disk. Free some space.")
        }
    }

    private func resumeLost() -> TransferError {
        TransferError(.resumeLost, .uploadGone, "The part file of \(destination.path) is gone or incomplete. The download restarts.")
    }

    func truncate(_ partFile: FileDescriptor, to size: Int64) throws(TransferError) {
        guard ftruncate(partFile.rawValue, off_t(size)) == 0 else { throw .destinationUnavailable(destination.partPath, errno: errno) }
    }

    /// UTIME_OMIT (utimensat(2)), a macro that Swift does not import.
    #if canImport(Darwin)
        private static let unchanged = -2
    #else
        private static let unchanged = (1 << 30) - 2
    #endif

    /// Sets the modification time, in nanoseconds since 1970. Keeps the access time.
    func setModificationTime(_ modificationTime: Int64, of partFile: FileDescriptor) throws(TransferError) {
        let (seconds, rest) = modificationTime.quotientAndRemainder(dividingBy: 1_000_000_000)
        // For times before 1970, the nanoseconds also count forward (futimens(2)).
        let time = timespec(tv_sec: Int(rest < 0 ? seconds - 1 : seconds), tv_nsec: Int(rest < 0 ? rest + 1_000_000_000 : rest))
        let times = [timespec(tv_sec: 0, tv_nsec: Self.unchanged), time]
        guard unsafe futimens(partFile.rawValue, times) == 0 else { throw .destinationUnavailable(destination.partPath, errno: errno) }
    }

    static let privateMode: mode_t = 0o600

    /// The permissions that this process gives new files (umask(2)).
    private static let usualMode: mode_t = {
        #if canImport(Darwin)
            let mask = umask(0o077)
            umask(mask)
        #else
            // Changing the mask to read it would affect files that other threads create at that time.
            let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
            let line = status.split(separator: "\n").first { $0.hasPrefix("Umask:") }
            let mask = line?.split(separator: "\t").last.flatMap { mode_t($0, radix: 8) } ?? 0o077
        #endif
        return 0o666 & ~mask | privateMode
    }()

    /// Gives a complete part file the permissions of a new file. Until then, only this user can read the file. Ignores errors, because some file
    /// systems have no permissions.
    ///
    /// - Parameter permissions: The permissions on the server. Other users get only permissions that they also have on the server.
    func setFinalPermissions(of partFile: FileDescriptor, within permissions: UInt32? = nil) {
        _ = fchmod(partFile.rawValue, Self.usualMode & (Self.privateMode | mode_t(truncatingIfNeeded: permissions ?? 0o777)))
    }

    func unlink(_ name: FilePath) throws(TransferError) {
        let result = unsafe name.withPlatformString { unsafe unlinkat(folder.rawValue, $0, 0) }
        guard result == 0 || errno == ENOENT else { throw .destinationUnavailable(destination.partPath, errno: errno) }
    }

    // MARK: The existing file

    /// Whether the policy keeps the existing file, which makes the download unnecessary.
    func isUpToDate(_ remote: RemoteFileState) throws(TransferError) -> Bool {
        guard destination.overwrite.comparesFiles, let local = try status(of: name) else { return false }
        if destination.overwrite == .skip { return true }
        if local.isFolder { throw .destinationUnavailable(destination.path, errno: EISDIR) }
        guard local.isRegular else { return false }
        if destination.overwrite == .newer {
            guard let modificationTime = remote.modificationTime else { throw unreported("modification time") }
            return Self.compare(modificationTime, local.modificationTime) <= 0
        }
        guard let size = remote.size else { throw unreported("size") }
        return size == local.size && remote.modificationTime.map { Self.compare($0, local.modificationTime) == 0 } ?? true
    }

    /// Compares times like `rsync`. HTTP and SFTP version 3 report only whole seconds. So if the remote time has no fraction, this function
    /// ignores the fraction of the local time.
    private static func compare(_ remote: Int64, _ local: Int64) -> Int {
        let second: Int64 = 1_000_000_000
        // Without this correction, integer division would round up times before 1970.
        let floor = local / second - (local % second < 0 ? 1 : 0)
        let (left, right) = remote.isMultiple(of: second) ? (remote / second, floor) : (remote, local)
        return left < right ? -1 : left > right ? 1 : 0
    }

    private func unreported(_ property: String) -> TransferError {
        TransferError(
            .unsupported, .unsupported,
            "\(destination.path) exists, and the server does not report the \(property) that the policy "
                + "\"\(destination.overwrite.rawValue)\" compares.")
    }

    func status(of file: FileDescriptor) throws(TransferError) -> Status {
        var found = stat()
        guard unsafe fstat(file.rawValue, &found) == 0 else { throw .destinationUnavailable(destination.partPath, errno: errno) }
        return Status(found)
    }

    /// Returns the status of a name in the folder, without following a link; nil if the name does not exist.
    func status(of name: FilePath) throws(TransferError) -> Status? {
        var found = stat()
        let result = unsafe name.withPlatformString { unsafe fstatat(folder.rawValue, $0, &found, AT_SYMLINK_NOFOLLOW) }
        if result == 0 { return Status(found) }
        guard errno == ENOENT else { throw .destinationUnavailable(destination.path, errno: errno) }
        return nil
    }
}

extension DestinationFolder.Status {
    fileprivate init(_ found: stat) {
        #if canImport(Darwin)
            let modified = found.st_mtimespec
        #else
            let modified = found.st_mtim
        #endif
        size = Int64(found.st_size)
        // The unit of st_blocks is 512 bytes, regardless of the block size of the file system (stat(2)).
        allocated = Int64(clamping: found.st_blocks).multipliedReportingOverflow(by: 512).partialValue
        modificationTime = Int64(modified.tv_sec) &* 1_000_000_000 &+ Int64(modified.tv_nsec)
        isRegular = found.st_mode & S_IFMT == S_IFREG
        isFolder = found.st_mode & S_IFMT == S_IFDIR
        links = Int(found.st_nlink)
        identity = [UInt64(bitPattern: Int64(found.st_dev)), UInt64(found.st_ino)]
    }
}

extension OverwritePolicy {
    /// Whether the policy can keep an existing file and treat the download as completed.
    var comparesFiles: Bool { self == .different || self == .newer || self == .skip }
}
