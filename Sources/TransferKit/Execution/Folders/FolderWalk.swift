import Foundation
package import SystemPackage
import TransferCore

/// A test hook that observes reads and injects read errors. The walk calls the hook before each read of an entry, with the folder's path and the
/// number of entries read so far. The hook returns the system error (errno(3)) to simulate, or nil.
package typealias FolderFault = @Sendable (FilePath, _ entries: Int) -> Errno?

/// Reads a folder and its subfolders in batches: depth first, with the entries of each folder sorted by the bytes of their names.
///
/// Because the entries are sorted, an interrupted walk can resume after the last entry. The *place* at which the walk resumes is a list of
/// ``FolderResumePoint`` values: one for each folder on the current path, from the outermost to the innermost.
///
/// Only the folders on the current path keep entries in memory: their names, and the sizes of at most 16,384 entries each. Together, the
/// names use at most ``maximumNameBytes``, but each folder may always use 64 KiB. A folder with more names is read several times.
///
/// A folder that can't be read becomes a failed item with the place at which a retry resumes, so no entry is listed twice.
///
/// Each walk has its own dispatch queue, so a folder that hangs delays no other work.
actor FolderWalk {
    private static let maximumInspectedEntries = 16_384
    /// The memory for a folder's names, in bytes, that is available even if the other folders on the current path use all memory for names.
    private static let minimumNameBytes = 64 << 10

    /// A folder on the current path.
    private struct Frame {
        let number: Int64
        let path: [UInt8]
        let identity: FileIdentity
        /// The open folder; nil after all entries have been inspected.
        var stream: DirectoryStream?
        /// The names of the entries that have not been inspected yet.
        var names: FolderNames
        /// The entries that have been inspected but not handled yet, in reverse order.
        var entries: [FoundEntry] = []
        /// The name of the entry that was handled last.
        var last: [UInt8]?
        /// The number of entries read so far. If the folder is read several times, its entries count each time.
        var count: Int
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private let executor = DiskExecutor()
    private let root: PendingItem
    /// See ``SourceFolders/withoutLinks(_:)``.
    private let withoutLinks: FilePath
    /// The identities of the root's parent folders. Set when the walk begins, because inspecting these folders blocks.
    private var ancestors: [FileIdentity] = []
    /// The queue's storage folder. It is never uploaded, because it contains URLs that grant access to uploads.
    private let storage: FilePath
    /// The identity of ``storage``; nil if the folder can't be inspected.
    private var excluded: FileIdentity?
    /// The maximum total size of the files, in bytes.
    private let maximumBytes: Int64
    private var stack: [Frame] = []
    private var hasBegun = false
    private var nextPosition: Int64
    private var nextDirectory: Int64
    /// The total size of the files found so far, in bytes.
    private var bytes: Int64 = 0
    /// The memory for the names of entries in all folders on the current path, in bytes.
    private let maximumNameBytes: Int
    /// The number of skipped entries, such as symbolic links and devices.
    private(set) var skipped = 0
    private let fault: FolderFault?

    init(
        _ root: PendingItem, from start: ManifestStart, withoutLinks: FilePath, excluding storage: FilePath,
        maximumBytes: Int64 = FileSize.sessionMaximum, maximumNameBytes: Int, fault: FolderFault? = nil
    ) {
        self.fault = fault
        self.maximumBytes = max(0, maximumBytes)
        self.maximumNameBytes = maximumNameBytes
        self.root = root
        self.withoutLinks = withoutLinks
        self.storage = storage
        nextPosition = start.position
        nextDirectory = start.directory
    }

    /// Returns the next rows for the session's manifest (``FolderExpansion``), at most `limit`, and the place after these rows; an empty
    /// batch at the end. Blocks on the disk.
    ///
    /// - Throws: `CancellationError`; a ``TransferError`` of the class ``FailureClass/noSpace`` if no file descriptor is free; a ``TransferError``
    ///   if a folder that is read several times can't be read again.
    func next(_ limit: Int) throws -> (ManifestBatch, place: [FolderResumePoint]) {
        var batch = ManifestBatch()
        if !hasBegun {
            hasBegun = true
            ancestors = root.ancestors.compactMap { FileIdentity(of: $0) }
            excluded = FileIdentity(of: storage)
            if let place = root.place {
                try resume(at: place, &batch)
            } else {
                let row = ManifestDirectory(
                    number: nextDirectory, parent: root.directory, source: root.source, destination: root.destination)
                try enter(root.path.bytes, isLink: true, row, &batch)
            }
        }
        while batch.count < limit, !stack.isEmpty {
            let top = stack.count - 1
            if let entry = stack[top].entries.popLast() {
                stack[top].last = entry.name
                try addEntry(entry, &batch)
            } else if stack[top].stream != nil {
                try inspect(top)
            } else {
                stack.removeLast()
            }
        }
        return (batch, stack.map { FolderResumePoint(number: $0.number, last: $0.last.map { Data($0) }, inode: $0.identity.inode) })
    }

    /// Opens the folders that an interrupted walk was reading.
    private func resume(at place: [FolderResumePoint], _ batch: inout ManifestBatch) throws {
        var row = ManifestDirectory(number: 0, parent: root.directory, source: root.source, destination: root.destination)
        var path = root.path.bytes
        for (level, folder) in place.enumerated() {
            row.number = folder.number
            try enter(path, isLink: true, row, at: Array(place[level...]), &batch)
            // If the folder can't be entered, for example because its disk is not mounted, `enter` has added a row for it instead.
            guard stack.last?.number == folder.number, let last = folder.last.map({ [UInt8]($0) }) else { return }
            path += [UInt8(ascii: "/")] + last
            row = ManifestDirectory(number: 0, parent: folder.number, source: Data(last), destination: Data())
        }
    }

    /// Opens a folder and reads its names. Adds the folder's row, unless the manifest contains the row. If the folder can't be uploaded, adds a
    /// failed or skipped entry instead.
    ///
    /// - Parameters:
    ///   - isLink: Whether the folder may be a symbolic link.
    ///   - place: The resume points of the folder and of its subfolders that an interrupted walk was reading; nil if the manifest does not
    ///     contain the folder's row yet.
    private func enter(
        _ path: [UInt8], isLink: Bool, _ row: ManifestDirectory, at place: [FolderResumePoint]? = nil, _ batch: inout ManifestBatch
    ) throws {
        let last = place?.first?.last.map { [UInt8]($0) }
        func add(_ state: ItemState, _ error: TransferError) {
            self.add(.folder, row.parent, row.source, row.destination, state: state, error: error, at: place, &batch)
        }
        let shown = FilePath(bytes: path)
        let stream: DirectoryStream
        do throws(Errno) {
            stream =
                if root.symbolicLinks == .follow {
                    try DirectoryStream(opening: shown, followsLink: isLink)
                } else {
                    // Follows no links: since the entry was inspected, a symbolic link may have replaced the entry or one of its parent
                    // folders.
                    try DirectoryStream(opening: shown, below: withoutLinks)
                }
        } catch {
            guard error != .tooManyOpenFiles, error != .tooManyOpenFilesInSystem else {
                throw TransferError.sourceUnavailable(shown, errno: error.rawValue)
            }
            return add(.failed, LocalFile.unavailable(shown, error))
        }
        if stream.identity == excluded {
            let message = "\(shown) is the storage folder of the queue, which is never uploaded."
            return add(.skipped, TransferError(.unsupported, .notReadable, message))
        }
        guard !ancestors.contains(stream.identity), !stack.contains(where: { $0.identity == stream.identity }) else {
            let message = "\(shown) is the same folder as one of its parent folders, so its upload would never end."
            return add(.failed, TransferError(.sourceLost, .notReadable, message))
        }
        var frame = Frame(
            number: row.number, path: path, identity: stream.identity, stream: stream, names: names(after: last), last: last, count: 0)
        do throws(Errno) {
            try read(stream, &frame)
        } catch {
            return add(.failed, .sourceUnavailable(shown, errno: error.rawValue))
        }
        try Task.checkCancellation()
        // The mount point of a disk that is not mounted is usually an empty folder.
        if last != nil, frame.count == 0, let inode = place?.first?.inode, inode != stream.identity.inode {
            let message = "\(shown) is a different folder from before, and it is empty. If its disk is not mounted, mount it, then retry."
            return add(.failed, TransferError(.sourceLost, .notReadable, message))
        }
        if place == nil {
            batch.directories.append(row)
            nextDirectory += 1
        }
        stack.append(frame)
    }

    private func names(after last: [UInt8]?) -> FolderNames {
        let used = stack.reduce(0) { $0 + $1.names.size }
        // Half of the memory stays free for the subfolders.
        return FolderNames(after: last, maximumBytes: max(Self.minimumNameBytes, (maximumNameBytes - used) / 2))
    }

    /// Reads the names of a folder's entries, and keeps as many as fit in memory.
    private func read(_ stream: DirectoryStream, _ frame: inout Frame) throws(Errno) {
        while !Task.isCancelled {
            if let error = fault?(FilePath(bytes: frame.path), frame.count) { throw error }
            guard let name = try stream.next() else { break }
            frame.count += 1
            frame.names.insert(name)
        }
        frame.names.arrange()
    }

    /// Inspects the next entries of the folder at `stack[top]`, in order.
    private func inspect(_ top: Int) throws {
        guard let stream = stack[top].stream else { return }
        var entries: [FoundEntry] = []
        while entries.count < Self.maximumInspectedEntries {
            try Task.checkCancellation()
            if let name = stack[top].names.removeFirst() {
                entries.append(FoundEntry(name, in: stream, at: stack[top].path, root.symbolicLinks))
            } else if stack[top].names.isComplete {
                stack[top].stream = nil
                break
            } else if entries.isEmpty {
                try readAgain(stream, top)
            } else {
                break
            }
        }
        stack[top].entries = entries.reversed()
    }

    /// Reads the next names of a folder whose names do not fit in memory.
    private func readAgain(_ stream: DirectoryStream, _ top: Int) throws {
        let last = stack[top].names.last
        stack[top].names = FolderNames(after: last, maximumBytes: 0)
        stack[top].names = names(after: last)
        stream.rewind()
        do throws(Errno) {
            try read(stream, &stack[top])
        } catch {
            throw TransferError.sourceUnavailable(FilePath(bytes: stack[top].path), errno: error.rawValue)
        }
    }

    private func addEntry(_ entry: FoundEntry, _ batch: inout ManifestBatch) throws {
        guard let frame = stack.last else { return }
        let source = Data(entry.name)
        switch entry.kind {
        case .file(let size) where size > maximumBytes - bytes:
            let error = FileSize.exceedsSession(FilePath(bytes: frame.path + [UInt8(ascii: "/")] + entry.name))
            add(.file, frame.number, source, Data(), state: .failed, error: error, &batch)
        case .file(let size): add(.file, frame.number, source, Data(), size: size, &batch)
        case .folder(let isLink):
            let row = ManifestDirectory(number: nextDirectory, parent: frame.number, source: source, destination: Data())
            try enter(frame.path + [UInt8(ascii: "/")] + entry.name, isLink: isLink, row, &batch)
        case .skipped(let error): add(.file, frame.number, source, Data(), state: .skipped, error: error, &batch)
        case .failed(let error): add(.file, frame.number, source, Data(), state: .failed, error: error, &batch)
        }
    }

    private func add(
        _ kind: ItemKind, _ directory: Int64?, _ source: Data, _ destination: Data, size: Int64 = 0, state: ItemState = .pending,
        error: TransferError? = nil, at place: [FolderResumePoint]? = nil, _ batch: inout ManifestBatch
    ) {
        batch.entries.append(
            ManifestEntry(
                position: nextPosition, directory: directory, kind: kind, source: source, destination: destination, size: size,
                state: state, error: error, symbolicLinks: kind == .folder || root.symbolicLinks != .follow ? root.symbolicLinks : nil,
                place: place))
        nextPosition += 1
        if state == .skipped { skipped += 1 }
        bytes += size
    }
}
