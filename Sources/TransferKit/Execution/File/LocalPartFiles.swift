import Foundation
import Locking
package import SystemPackage
package import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Names and removes the part files of downloads on this machine. In a fleet, also takes part files away from the queue that ran the session
/// before. Like the removals of remote content, the pending removals of part files are in the discard outbox (``DiscardOutbox``), which survives
/// restarts of the process.
///
/// Before the first attempt at an endpoint, the file gets an empty checkpoint that names the future part file. The database therefore always
/// lists all part files that may exist on the disk. The checkpoint is stored under a separate endpoint address (`Endpoint.localPartFile(of:)`).
package struct LocalPartFiles: Sendable {
    private let sources: SourceFolders
    private let sync: @Sendable (FileDescriptor) -> CInt
    /// The download folders with a removal in progress.
    private let busy = Locked<Set<FilePath>>([])

    /// - Parameter sync: Makes removals in a folder durable, by default with fsync(2). Tests replace this function.
    package init(sources: SourceFolders, sync: @escaping @Sendable (FileDescriptor) -> CInt = { fsync($0.rawValue) }) {
        self.sources = sources
        self.sync = sync
    }

    /// The hidden name of the part file, in the folder of the final file. Unique for each transfer ID and endpoint, so bytes from two
    /// endpoints are never mixed.
    static func name(for name: FilePath, transferID: String, at endpoint: Endpoint) -> FilePath {
        let own = name.lastComponent.map { FilePath(root: nil, components: $0).bytes } ?? []
        // FNV-1a with 64 bits. The hash is short to leave room for the beginning of the final name. A name has at most 255 bytes (NAME_MAX,
        // limits.h).
        let hash = endpoint.address.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        let suffix = Array(".\(transferID)-\(String(hash, radix: 16)).part".utf8)
        let partFile = Array(".".utf8) + own.prefix(240 - suffix.count) + suffix
        return name.removingLastComponent().pushing(FilePath(bytes: partFile))
    }

    /// The stored checkpoint of a part file.
    package func checkpoint(of partFile: FilePath, below root: FilePath) -> Checkpoint {
        Checkpoint(data: Data(sources.stored(root) + [0] + partFile.bytes), confirmed: 0)
    }

    /// The download folder of a part file; nil for any other checkpoint.
    func root(of checkpoint: Checkpoint) -> FilePath? { paths(in: checkpoint)?.root }

    /// The name of a part file, relative to its download folder; nil for any other checkpoint.
    func name(in checkpoint: Checkpoint) -> FilePath? { paths(in: checkpoint)?.partFile }

    /// Returns whether a part file is complete: the file also has its final name, or is about to get this name. No queue writes content into
    /// such a file.
    func isComplete(_ checkpoint: Checkpoint) async -> Bool {
        let links = await links(of: checkpoint)
        return links.partFile > 1 || links.temporary > 0
    }

    /// The path of a part file; nil if the file does not exist.
    func existingPath(of checkpoint: Checkpoint) async -> FilePath? {
        guard let (root, partFile) = paths(in: checkpoint), await links(of: checkpoint).partFile > 0 else { return nil }
        return root.pushing(partFile)
    }

    /// The number of hard links to a part file, and to the file with its temporary name; 0 for a file that does not exist.
    private func links(of checkpoint: Checkpoint) async -> (partFile: Int, temporary: Int) {
        guard let (root, partFile) = paths(in: checkpoint), let last = partFile.lastComponent, last.kind == .regular else { return (0, 0) }
        let name = FilePath(root: nil, components: last)
        return await BlockingIO.run(.partFiles) {
            guard let folder = try? ConfinedFolder.open(root, parentOf: partFile, creates: false).folder else { return (0, 0) }
            defer { try? folder.close() }
            func links(_ name: FilePath) -> Int {
                var found = stat()
                let result = unsafe name.withPlatformString { unsafe fstatat(folder.rawValue, $0, &found, AT_SYMLINK_NOFOLLOW) }
                return result == 0 ? Int(found.st_nlink) : 0
            }
            return (links(name), links(DownloadDestination.temporaryName(of: name)))
        }
    }

    /// Takes a part file away from its former owner, the queue that ran the session before. The former owner can then no longer give the
    /// file its final name. The former owner may still have the part file open, so this queue does not use the content unless the part file
    /// already has its final name.
    ///
    /// - Parameters:
    ///   - checkpoint: The checkpoint of the part file.
    ///   - own: The name of this queue's part file, in the same folder.
    /// - Returns: Whether the part file is complete and has its final name. If so, the part file also has the name `own`, and this queue
    ///   must use it. Otherwise, the part file no longer exists.
    /// - Throws: A ``/TransferCore/TransferError`` if the former owner may still give the part file its final name.
    package func seize(_ checkpoint: Checkpoint, as own: FilePath) async throws(TransferError) -> Bool {
        guard let (root, partFile) = paths(in: checkpoint), let last = partFile.lastComponent, let ownLast = own.lastComponent else {
            return false
        }
        let (name, ownName) = (FilePath(root: nil, components: last), FilePath(root: nil, components: ownLast))
        return try await BlockingIO.run(.partFiles) { () throws(TransferError) in
            let folder: FileDescriptor
            do throws(TransferError) {
                folder = try ConfinedFolder.open(root, parentOf: partFile, creates: false).folder
            } catch {
                guard error.code == .noSuchFile else { throw error }
                return false
            }
            defer { try? folder.close() }
            func check(_ result: CInt) throws(TransferError) {
                guard result == 0 || errno == ENOENT else { throw .destinationUnavailable(root.pushing(partFile), errno: errno) }
            }
            Self.removePlaceholder(of: name, in: folder)
            // The former owner completes the download with link(2) or rename(2) on the old name. Both fail once the name has changed.
            let result = unsafe name.withPlatformString { old in
                unsafe ownName.withPlatformString { unsafe renameat(folder.rawValue, old, folder.rawValue, $0) }
            }
            try check(result)
            guard result == 0 else { return false }
            // Remove the temporary name of a complete part file. The former owner may be about to rename the file from this name to its final
            // name.
            try check(
                unsafe DownloadDestination.temporaryName(of: name).withPlatformString { unsafe unlinkat(folder.rawValue, $0, 0) })
            var found = stat()
            try check(unsafe ownName.withPlatformString { unsafe fstatat(folder.rawValue, $0, &found, AT_SYMLINK_NOFOLLOW) })
            if found.st_nlink > 1 { return true }
            try check(unsafe ownName.withPlatformString { unsafe unlinkat(folder.rawValue, $0, 0) })
            return false
        }
    }

    private func paths(in checkpoint: Checkpoint) -> (root: FilePath, partFile: FilePath)? {
        guard let end = checkpoint.data.firstIndex(of: 0) else { return nil }
        return (
            FilePath(bytes: sources.path(.folder, [UInt8](checkpoint.data[..<end]))), FilePath(bytes: checkpoint.data[(end + 1)...])
        )
    }

    /// Removes part files below one download folder, and then syncs each folder that contained part files. A part file counts as removed if
    /// it does not exist, or if it is no longer below the download folder.
    ///
    /// Fails immediately with the code `timedOut` while an earlier removal in this download folder has not returned. Otherwise, each
    /// removal on a hanging disk would block another thread.
    ///
    /// - Returns: The error of each part file that was not removed, by its index.
    package func remove(_ checkpoints: [Checkpoint]) async -> [Int: TransferError] {
        guard let root = checkpoints.lazy.compactMap({ root(of: $0) }).first else { return [:] }
        guard busy.withLock({ $0.insert(root).inserted }) else {
            let error = TransferError(.transient, .timedOut, "\(root) does not respond: an earlier removal in it has not returned.")
            return Dictionary(uniqueKeysWithValues: checkpoints.indices.map { ($0, error) })
        }
        return await BlockingIO.run(.partFiles) {
            defer { busy.withLock { _ = $0.remove(root) } }
            return removeNow(checkpoints)
        }
    }

    /// Removes the empty file that reserves the final name of a part file, on a file system without hard links.
    private static func removePlaceholder(of partFile: FilePath, in folder: FileDescriptor) {
        func status(_ name: FilePath) -> stat? {
            var found = stat()
            let result = unsafe name.withPlatformString { unsafe fstatat(folder.rawValue, $0, &found, AT_SYMLINK_NOFOLLOW) }
            return result == 0 && found.st_mode & S_IFMT == S_IFREG ? found : nil
        }
        let noteName = DownloadDestination.temporaryName(of: partFile)
        guard let size = status(noteName)?.st_size, size < FinalNameNote.maximumSize, let partFileSize = status(partFile)?.st_size,
            partFileSize > 0
        else {
            return
        }
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        let descriptor = unsafe noteName.withPlatformString { unsafe openat(folder.rawValue, $0, flags) }
        guard descriptor >= 0 else { return }
        let file = FileDescriptor(rawValue: descriptor)
        defer { try? file.close() }
        var bytes = [UInt8](repeating: 0, count: FinalNameNote.maximumSize)
        guard let count = try? unsafe bytes.withUnsafeMutableBytes({ unsafe try file.read(into: $0) }),
            let note = FinalNameNote(Array(bytes[..<count])), note.reservesName, note.size == Int64(partFileSize),
            status(note.name)?.st_size == 0
        else { return }
        _ = unsafe note.name.withPlatformString { unsafe unlinkat(folder.rawValue, $0, 0) }
    }

    private func removeNow(_ checkpoints: [Checkpoint]) -> [Int: TransferError] {
        var failures: [Int: TransferError] = [:]
        var folders: [FilePath: FileDescriptor] = [:]
        defer { for folder in folders.values { try? folder.close() } }
        var removed: [FilePath: [Int]] = [:]
        for (index, checkpoint) in checkpoints.enumerated() {
            guard let (root, partFile) = paths(in: checkpoint), let last = partFile.lastComponent, last.kind == .regular else { continue }
            let name = FilePath(root: nil, components: last)
            let parent = partFile.removingLastComponent()
            do throws(TransferError) {
                let opened: FileDescriptor
                if let folder = folders[parent] {
                    opened = folder
                } else {
                    opened = try ConfinedFolder.open(root, parentOf: partFile, creates: false).folder
                }
                folders[parent] = opened
                Self.removePlaceholder(of: name, in: opened)
                // The temporary name may belong to a small file that contains the final name; see ``DownloadDestination``. Remove that file first. If
                // only the part file were gone, the small file would seem to describe an older file with the final name.
                for name in [DownloadDestination.temporaryName(of: name), name] {
                    let result = unsafe name.withPlatformString { unsafe unlinkat(opened.rawValue, $0, 0) }
                    guard result == 0 || errno == ENOENT else { throw .destinationUnavailable(root.pushing(partFile), errno: errno) }
                }
                removed[parent, default: []].append(index)
            } catch {
                if error.code != .noSuchFile, error.code != .unsafeName { failures[index] = error }
            }
        }
        // After this method returns, the queue deletes these removals from the outbox. Without the sync, the removed files may reappear after a
        // power loss (fsync(2), on directories), and no pending removal would refer to them.
        for (parent, folder) in folders {
            guard let indices = removed[parent], sync(folder) != 0 else { continue }
            let code = errno
            for index in indices {
                guard let (root, partFile) = paths(in: checkpoints[index]) else { continue }
                failures[index] = .destinationUnavailable(root.pushing(partFile), errno: code)
            }
        }
        return failures
    }
}
