import Foundation
package import SystemPackage
import TransferCore

/// A test hook that observes reads and injects read errors. The walk calls the hook before each read of an entry, with the folder's path
/// and the number of entries read so far. Returns the system error (errno(3)) to simulate, or nil.
package typealias FolderFault = @Sendable (FilePath, _ entries: Int) -> Errno?

/// Rows that ``FolderWalk`` has already returned for a folder that then turned out to be unreadable.
struct WithdrawnRows: Sendable {
    var start: ManifestStart
    /// The number of file rows or of directory rows, whichever is larger.
    var count: Int
}

/// Reads a folder and its subfolders in batches: depth first, with the entries of each folder sorted by the bytes of their names.
///
/// Only the folders on the current path keep entries in memory, at most 16,384 each. The entries of a larger folder are read and sorted in
/// groups of 16,384.
///
/// Reports a folder that can't be read completely as failed, without its contents. A retry can therefore read all of the folder's contents
/// without listing an entry twice.
///
/// Each walk has its own thread, so a folder that hangs delays no other work.
actor FolderWalk {
    private static let maximumEntriesPerRead = 16_384

    private struct Frame {
        let row: ManifestDirectory
        let path: [UInt8]
        let file: FileIdentity
        /// The open folder; nil after all entries have been read.
        var stream: DirectoryStream?
        /// The entries that have been read but not handled yet, in reverse order.
        var entries: [FoundEntry] = []
        /// The number of entries read so far.
        var count = 0
        /// The numbers of the folder's first rows.
        let start: ManifestStart
        /// The totals before the walk entered the folder.
        let totalsBefore: ManifestTotals
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private let executor = DiskExecutor()
    private let root: PendingItem
    /// The parent folders of the root. Set when the walk begins, because inspecting them blocks.
    private var ancestors: [FileIdentity] = []
    /// The queue's storage folder. It is never uploaded, because it contains URLs that grant access to uploads.
    private let storage: FilePath
    private var excluded: FileIdentity?
    /// The maximum total size of the files, in bytes.
    private let maximumBytes: Int64
    private var stack: [Frame] = []
    private var hasBegun = false
    private var nextPosition: Int64
    private var nextDirectory: Int64
    private(set) var totals = ManifestTotals()
    /// The number of skipped entries, such as symbolic links and devices.
    private(set) var skipped = 0
    private let fault: FolderFault?
    /// The numbers of the current batch's first rows.
    private var batchStart: ManifestStart
    /// The rows of earlier batches that the caller must delete; nil if there are no such rows.
    private var withdrawn: WithdrawnRows?

    init(
        _ root: PendingItem, from start: ManifestStart, excluding storage: FilePath, maximumBytes: Int64 = FileSize.sessionMaximum,
        fault: FolderFault? = nil
    ) {
        self.fault = fault
        self.maximumBytes = max(0, maximumBytes)
        batchStart = start
        self.root = root
        self.storage = storage
        nextPosition = start.position
        nextDirectory = start.directory
    }

    /// Returns the next rows for the manifest, at most `limit`; an empty batch at the end. Blocks on the disk.
    ///
    /// - Returns: The new rows, and the earlier rows to delete before the caller adds the new rows.
    /// - Throws: `CancellationError`; a ``TransferError`` of the class ``FailureClass/noSpace`` if no file descriptor is free.
    func next(_ limit: Int) throws -> (ManifestBatch, withdrawn: WithdrawnRows?) {
        var batch = ManifestBatch()
        batchStart = ManifestStart(position: nextPosition, directory: nextDirectory)
        withdrawn = nil
        if !hasBegun {
            hasBegun = true
            ancestors = root.ancestors.compactMap { FileIdentity(of: $0) }
            excluded = FileIdentity(of: storage)
            try enter(
                root.path.bytes, isLink: true, directory: root.directory, source: root.source, destination: root.destination, &batch)
        }
        while batch.count < limit, !stack.isEmpty {
            let top = stack.count - 1
            if let entry = stack[top].entries.popLast() {
                try addEntry(entry, &batch)
            } else if stack[top].stream != nil {
                try read(top, &batch)
            } else {
                stack.removeLast()
            }
        }
        return (batch, withdrawn)
    }

    /// Opens a folder and adds its row, or reports that the folder can't be read.
    private func enter(
        _ path: [UInt8], isLink: Bool, directory: Int64?, source: Data, destination: Data, _ batch: inout ManifestBatch
    ) throws {
        func add(_ state: ItemState, _ error: TransferError) {
            self.add(.folder, directory, source, destination, state: state, error: error, &batch)
        }
        let shown = FilePath(bytes: path)
        do throws(Errno) {
            let stream =
                if root.symbolicLinks == .follow {
                    try DirectoryStream(opening: shown, followsLink: isLink)
                } else {
                    // Follows no links: since the entry was inspected, a symbolic link may have replaced the entry or one of its parent
                    // folders.
                    try DirectoryStream(opening: shown, below: root.ancestors.last ?? root.path)
                }
            if stream.identity == excluded {
                let message = "\(shown) is the storage folder of the queue, which is never uploaded."
                return add(.skipped, TransferError(.unsupported, .notReadable, message))
            }
            guard !ancestors.contains(stream.identity), !stack.contains(where: { $0.file == stream.identity }) else {
                let message = "\(shown) is the same folder as one of its parent folders, so its upload would never end."
                return add(.failed, TransferError(.sourceLost, .notReadable, message))
            }
            let row = ManifestDirectory(number: nextDirectory, parent: directory, source: source, destination: destination)
            batch.directories.append(row)
            let start = ManifestStart(position: nextPosition, directory: nextDirectory)
            stack.append(Frame(row: row, path: path, file: stream.identity, stream: stream, start: start, totalsBefore: totals))
            nextDirectory += 1
        } catch {
            guard error != .tooManyOpenFiles, error != .tooManyOpenFilesInSystem else {
                throw TransferError.sourceUnavailable(shown, errno: error.rawValue)
            }
            add(.failed, LocalFile.unavailable(shown, error))
        }
    }

    /// Reads more entries of the folder at `stack[top]`, up to `maximumEntriesPerRead`, and sorts them.
    private func read(_ top: Int, _ batch: inout ManifestBatch) throws {
        guard let stream = stack[top].stream else { return }
        let shown = FilePath(bytes: stack[top].path)
        do throws(Errno) {
            while stack[top].entries.count < Self.maximumEntriesPerRead {
                guard !Task.isCancelled else { break }
                if let error = fault?(shown, stack[top].count) { throw error }
                guard let name = try stream.next() else {
                    stack[top].stream = nil
                    break
                }
                stack[top].count += 1
                stack[top].entries.append(FoundEntry(name, in: stream, at: stack[top].path, root.symbolicLinks))
            }
        } catch {
            return giveUp(stack.removeLast(), .sourceUnavailable(shown, errno: error.rawValue), &batch)
        }
        try Task.checkCancellation()
        stack[top].entries.sort { $1.name.lexicographicallyPrecedes($0.name) }
    }

    /// Withdraws all rows added since the walk entered a folder, and reports the folder as unreadable.
    private func giveUp(_ frame: Frame, _ error: TransferError, _ batch: inout ManifestBatch) {
        batch.entries.removeAll { $0.position >= frame.start.position }
        batch.directories.removeAll { $0.number >= frame.start.directory }
        if frame.start.position < batchStart.position || frame.start.directory < batchStart.directory {
            let count = max(batchStart.position - frame.start.position, batchStart.directory - frame.start.directory)
            withdrawn = WithdrawnRows(start: frame.start, count: Int(count))
        }
        totals = frame.totalsBefore
        // The numbers of withdrawn rows are not used again.
        add(.folder, frame.row.parent, frame.row.source, frame.row.destination, state: .failed, error: error, &batch)
    }

    private func addEntry(_ entry: FoundEntry, _ batch: inout ManifestBatch) throws {
        guard let frame = stack.last else { return }
        let source = Data(entry.name)
        switch entry.kind {
        case .file(let size) where size > maximumBytes - totals.bytes:
            let error = FileSize.exceedsSession(FilePath(bytes: frame.path + [UInt8(ascii: "/")] + entry.name))
            add(.file, frame.row.number, source, Data(), state: .failed, error: error, &batch)
        case .file(let size): add(.file, frame.row.number, source, Data(), size: size, &batch)
        case .folder(let isLink):
            try enter(
                frame.path + [UInt8(ascii: "/")] + entry.name, isLink: isLink, directory: frame.row.number, source: source,
                destination: Data(), &batch)
        case .skipped(let error): add(.file, frame.row.number, source, Data(), state: .skipped, error: error, &batch)
        case .failed(let error): add(.file, frame.row.number, source, Data(), state: .failed, error: error, &batch)
        }
    }

    private func add(
        _ kind: ItemKind, _ directory: Int64?, _ source: Data, _ destination: Data, size: Int64 = 0, state: ItemState = .pending,
        error: TransferError? = nil, _ batch: inout ManifestBatch
    ) {
        batch.entries.append(
            ManifestEntry(
                position: nextPosition, directory: directory, kind: kind, source: source, destination: destination, size: size,
                state: state, error: error, symbolicLinks: kind == .folder || root.symbolicLinks != .follow ? root.symbolicLinks : nil))
        nextPosition += 1
        guard state != .skipped else {
            skipped += 1
            return
        }
        totals.files += 1
        totals.bytes += size
        if state == .failed { totals.failed += 1 }
    }
}
