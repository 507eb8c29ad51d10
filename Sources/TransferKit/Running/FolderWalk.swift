import Foundation
package import SystemPackage
import TransferCore

/// What goes wrong with the folder at a path after so many of its entries were read: an error of the system (errno(3)), or nil.
package typealias FolderFault = @Sendable (FilePath, _ entries: Int) -> Errno?

/// Rows that were handed out of a folder that turned out to be unreadable.
struct WithdrawnRows: Sendable {
    var start: ManifestStart
    /// How many there are at most, of either kind.
    var count: Int
}

/// Reads a folder with all that is in it, in pieces: depth first, the entries of each folder in the order of their names' bytes.
///
/// Holds the entries of the folders on the way down only, and of each at most 16,384; a larger folder is in order within each such chunk.
/// A folder that can't be read to its end is told of as one that failed, with nothing of what is in it: whoever reads it again later finds
/// all of it, and lists nothing twice.
actor FolderWalk {
    private static let chunk = 16_384

    private struct Frame {
        let row: ManifestDirectory
        let path: [UInt8]
        let file: FileNumber
        /// Open as long as there are entries that were not read yet.
        var stream: DirectoryStream?
        /// What was read, last entry first.
        var entries: [FoundEntry] = []
        /// How many entries were read in all.
        var count = 0
        /// Where its rows begin, and what was found before it.
        let start: ManifestStart
        let totalsBefore: ManifestTotals
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private let executor = DiskExecutor()
    private let root: PendingItem
    private let ancestors: [FileNumber]
    /// The queue's own storage, which is never sent: what is in it gives access to uploads.
    private let excluded: FileNumber?
    /// How many bytes its files may come to.
    private let mostBytes: Int64
    private var stack: [Frame] = []
    private var isBegun = false
    private var nextPosition: Int64
    private var nextDirectory: Int64
    private(set) var totals = ManifestTotals()
    /// How many entries were left out: links, and what is neither a file nor a folder.
    private(set) var skipped = 0
    private let fault: FolderFault?
    /// Where the rows of the batch that is being made begin, and of those that were handed out, what is to be taken back.
    private var batchStart: ManifestStart
    private var withdrawn: WithdrawnRows?

    init(
        _ root: PendingItem, from start: ManifestStart, excluding storage: FilePath, mostBytes: Int64 = FileSize.sessionMaximum,
        fault: FolderFault? = nil
    ) {
        self.fault = fault
        self.mostBytes = max(0, mostBytes)
        batchStart = start
        self.root = root
        ancestors = root.ancestors.compactMap { FileNumber(of: $0) }
        excluded = FileNumber(of: storage)
        nextPosition = start.position
        nextDirectory = start.directory
    }

    /// The next rows for the manifest, at most so many; none at the end. Waits for the disk.
    ///
    /// - Returns: The rows, and what of the earlier ones has to be taken out before they are put in.
    /// - Throws: `CancellationError`; a ``TransferError`` of the class ``FailureClass/noSpace`` if this machine lacks descriptors.
    func next(_ limit: Int) throws -> (ManifestBatch, withdrawn: WithdrawnRows?) {
        var batch = ManifestBatch()
        batchStart = ManifestStart(position: nextPosition, directory: nextDirectory)
        withdrawn = nil
        if !isBegun {
            isBegun = true
            try enter(
                root.path.bytes, isLink: true, directory: root.directory, source: root.source, destination: root.destination, &batch)
        }
        while batch.count < limit, !stack.isEmpty {
            let top = stack.count - 1
            if let entry = stack[top].entries.popLast() {
                try take(entry, &batch)
            } else if stack[top].stream != nil {
                try read(top, &batch)
            } else {
                stack.removeLast()
            }
        }
        return (batch, withdrawn)
    }

    /// Goes down into a folder.
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
                    // What was looked at may be a link by now, as may each folder above it.
                    try DirectoryStream(opening: shown, below: root.ancestors.last ?? root.path)
                }
            if stream.number == excluded {
                let message = "\(shown) is where the queue itself is stored, and is never sent."
                return add(.skipped, TransferError(.unsupported, .notReadable, message))
            }
            guard !ancestors.contains(stream.number), !stack.contains(where: { $0.file == stream.number }) else {
                let message = "\(shown) leads back to a folder that it is in, so that sending it would have no end."
                return add(.failed, TransferError(.sourceLost, .notReadable, message))
            }
            let row = ManifestDirectory(number: nextDirectory, parent: directory, source: source, destination: destination)
            batch.directories.append(row)
            let start = ManifestStart(position: nextPosition, directory: nextDirectory)
            stack.append(Frame(row: row, path: path, file: stream.number, stream: stream, start: start, totalsBefore: totals))
            nextDirectory += 1
        } catch {
            guard error != .tooManyOpenFiles, error != .tooManyOpenFilesInSystem else {
                throw TransferError.sourceUnavailable(shown, errno: error.rawValue)
            }
            add(.failed, LocalFile.unavailable(shown, error))
        }
    }

    /// Reads the next chunk of the folder at the top.
    private func read(_ top: Int, _ batch: inout ManifestBatch) throws {
        guard let stream = stack[top].stream else { return }
        let shown = FilePath(bytes: stack[top].path)
        do throws(Errno) {
            while stack[top].entries.count < Self.chunk {
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

    /// Takes back all rows since a folder was entered, and tells of it as of one that can't be read.
    private func giveUp(_ frame: Frame, _ error: TransferError, _ batch: inout ManifestBatch) {
        batch.entries.removeAll { $0.position >= frame.start.position }
        batch.directories.removeAll { $0.number >= frame.start.directory }
        if frame.start.position < batchStart.position || frame.start.directory < batchStart.directory {
            let count = max(batchStart.position - frame.start.position, batchStart.directory - frame.start.directory)
            withdrawn = WithdrawnRows(start: frame.start, count: Int(count))
        }
        totals = frame.totalsBefore
        // Numbers that were told of are not given again.
        add(.folder, frame.row.parent, frame.row.source, frame.row.destination, state: .failed, error: error, &batch)
    }

    private func take(_ entry: FoundEntry, _ batch: inout ManifestBatch) throws {
        guard let frame = stack.last else { return }
        let source = Data(entry.name)
        switch entry.kind {
        case .file(let size) where size > mostBytes - totals.bytes:
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
