import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Simulates missing features and errors of a file system in tests.
package struct FinalNameFaults: Sendable {
    /// A step after which a test can simulate that the process is killed.
    package enum Step: Sendable, CaseIterable {
        /// The note with the final name is durable.
        case noted
        /// An empty file reserves the final name.
        case reserved
        /// The file has its final name.
        case renamed
    }

    /// Whether the file system does not support hard links, like FAT.
    package var refusesLinks = false
    /// Whether the file system does not support RENAME_NOREPLACE, which makes a rename fail if the new name exists.
    package var refusesExclusiveRename = false
    /// Whether the file system can't reserve space, like NFS version 3.
    package var refusesReservations = false
    /// Returns the free space in bytes; nil to query the file system.
    package var freeSpace: (@Sendable () -> Int64)?
    /// The disk space that unfinished downloads still need; nil for the value that all downloads of the process share.
    package var promisedSpace: PromisedSpace?
    /// Called after each step.
    package var reached: @Sendable (Step) -> Void = { _ in }
    /// Returns the error number with which the next sync of a part file fails; 0 to perform the sync.
    package var syncError: @Sendable () -> CInt = { 0 }

    package init() {}
}

/// Gives a part file its final name with a rename. Used on a file system without hard links, such as FAT, exFAT and some SMB shares.
///
/// After the rename, nothing distinguishes the downloaded file from a file of another program. Therefore, before the rename, the writer
/// creates the *note*: a small file in the same folder with the part file's identity and final name. The queue removes the note once it has
/// stored the completion of the download.
extension DestinationFolder {
    private var noteName: FilePath { DownloadDestination.temporaryName(of: partName) }

    private func write(_ note: FinalNameNote) throws(TransferError) {
        try removeNote()
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = unsafe noteName.withPlatformString { unsafe openat(folder.rawValue, $0, flags, 0o600 as mode_t) }
        guard descriptor >= 0 else { throw .destinationUnavailable(destination.partPath, errno: errno) }
        let file = FileDescriptor(rawValue: descriptor)
        defer { try? file.close() }
        do {
            try file.writeAll(note.bytes)
        } catch {
            throw .destinationUnavailable(destination.partPath, errno: (error as? Errno)?.rawValue ?? EIO)
        }
        guard fsync(descriptor) == 0, fsync(folder.rawValue) == 0 else { throw .destinationUnavailable(destination.partPath, errno: errno) }
        faults.reached(.noted)
    }

    func removeNote() throws(TransferError) {
        try unlink(noteName)
    }

    private func readNote() -> FinalNameNote? {
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        let descriptor = unsafe noteName.withPlatformString { unsafe openat(folder.rawValue, $0, flags) }
        guard descriptor >= 0 else { return nil }
        let file = FileDescriptor(rawValue: descriptor)
        defer { try? file.close() }
        var bytes = [UInt8](repeating: 0, count: FinalNameNote.maximumSize)
        guard let status = try? status(of: file), status.isRegular,
            let count = try? unsafe bytes.withUnsafeMutableBytes({ unsafe try file.read(into: $0) })
        else { return nil }
        return FinalNameNote(Array(bytes[..<count]))
    }

    /// Returns the final name that an earlier rename gave the part file; nil if the file does not have that name.
    func notedName(_ partStatus: Status) throws(TransferError) -> FilePath? {
        guard let note = readNote(), note.describes(partStatus), try status(of: note.name)?.identity == partStatus.identity else {
            return nil
        }
        return note.name
    }

    /// Opens the file that an earlier attempt renamed to its final name; returns nil if that file does not exist or can't be opened. Call this
    /// only if the part file is gone, because the note can describe an earlier file.
    func openRenamedFile() throws(TransferError) -> FileDescriptor? {
        guard let note = readNote(), let found = try status(of: note.name), note.describes(found) else { return nil }
        let flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        var descriptor = unsafe note.name.withPlatformString { unsafe openat(folder.rawValue, $0, O_RDWR | flags) }
        // The complete file may have lost its write permission.
        if descriptor < 0, errno == EACCES {
            descriptor = unsafe note.name.withPlatformString { unsafe openat(folder.rawValue, $0, O_RDONLY | flags) }
        }
        guard descriptor >= 0 else { return nil }
        return FileDescriptor(rawValue: descriptor)
    }

    /// Removes the empty file with which an earlier attempt reserved the final name, if that file exists.
    func removePlaceholder(of partStatus: Status) throws(TransferError) {
        guard let note = readNote(), note.describes(partStatus), partStatus.size > 0,
            let found = try status(of: note.name), found.isRegular, found.size == 0
        else { return }
        try unlink(note.name)
    }

    /// Renames the part file. Returns false if the name exists and `replaces` is false.
    func renamePartFile(_ partStatus: Status, to name: FilePath, replaces: Bool) throws(TransferError) -> Bool {
        if !replaces, try status(of: name) != nil { return false }
        var note = FinalNameNote(
            identity: partStatus.identity, size: partStatus.size, modificationTime: partStatus.modificationTime, reservesName: false,
            name: name)
        try write(note)
        if replaces {
            try rename(partName, to: name)
        } else if let isDone = try renameExclusively(to: name) {
            guard isDone else { return false }
        } else {
            note.reservesName = true
            try write(note)
            guard try reserve(name) else { return false }
            do throws(TransferError) {
                try rename(partName, to: name)
            } catch {
                try? unlink(name)
                throw error
            }
        }
        faults.reached(.renamed)
        return true
    }

    #if !canImport(Darwin)
        private typealias RenameAt2 =
            @convention(c) (CInt, UnsafePointer<CChar>?, CInt, UnsafePointer<CChar>?, CUnsignedInt) -> CInt

        /// renameat2(2), which Swift's module of the C library lacks; nil if the C library also lacks it.
        private static let renameat2: RenameAt2? = unsafe dlsym(nil, "renameat2").map { unsafe unsafeBitCast($0, to: RenameAt2.self) }
    #endif

    /// Renames the part file unless the name exists (renameat2(2), RENAME_NOREPLACE).
    ///
    /// - Returns: Whether the file was renamed; nil if the file system does not support RENAME_NOREPLACE.
    private func renameExclusively(to name: FilePath) throws(TransferError) -> Bool? {
        guard !faults.refusesExclusiveRename else { return nil }
        #if !canImport(Darwin)
            guard let renameat2 = unsafe Self.renameat2 else { return nil }
        #endif
        let result = unsafe partName.withPlatformString { old in
            unsafe name.withPlatformString { name in
                #if canImport(Darwin)
                    unsafe renameatx_np(folder.rawValue, old, folder.rawValue, name, UInt32(RENAME_EXCL))
                #else
                    unsafe renameat2(folder.rawValue, old, folder.rawValue, name, 1)
                #endif
            }
        }
        guard result != 0 else { return true }
        switch errno {
        case EEXIST: return false
        case EINVAL, ENOSYS, ENOTSUP: return nil
        default: throw .destinationUnavailable(destination.path, errno: errno)
        }
    }

    /// Reserves a name with an empty file (open(2), O_EXCL). Returns false if the name exists.
    private func reserve(_ name: FilePath) throws(TransferError) -> Bool {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        let reserved = unsafe name.withPlatformString { unsafe openat(folder.rawValue, $0, flags, Self.privateMode) }
        guard reserved >= 0 else {
            if errno == EEXIST { return false }
            throw .destinationUnavailable(destination.path, errno: errno)
        }
        _ = close(reserved)
        faults.reached(.reserved)
        return true
    }
}

extension FinalNameNote {
    /// The resolution of FAT's modification times in nanoseconds: 2 s.
    private static let resolution: UInt64 = 2_000_000_000

    /// Whether the note describes a file. FAT and exFAT have no inodes: the kernel assigns new numbers at each mount. If the numbers
    /// differ, size and modification time decide.
    fileprivate func describes(_ status: DestinationFolder.Status) -> Bool {
        guard status.isRegular, status.size == size else { return false }
        let difference = modificationTime.subtractingReportingOverflow(status.modificationTime)
        return status.identity == identity || !difference.overflow && difference.partialValue.magnitude < Self.resolution
    }
}
