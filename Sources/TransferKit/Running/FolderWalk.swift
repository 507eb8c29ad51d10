import Foundation
import SystemPackage
import TransferCore

/// Reads a folder with all that is in it, in pieces: depth first, the entries of each folder in the order of their names' bytes.
///
/// Holds the entries of the folders on the way down only, and of each at most 16,384; a larger folder is in order within each such chunk.
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
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private let executor = DiskExecutor()
    private let root: PendingItem
    private let ancestors: [FileNumber]
    /// The queue's own storage, which is never sent: what is in it gives access to uploads.
    private let excluded: FileNumber?
    private var stack: [Frame] = []
    private var isBegun = false
    private var nextPosition: Int64
    private var nextDirectory: Int64
    private(set) var totals = ManifestTotals()

    init(_ root: PendingItem, from start: ManifestStart, excluding storage: FilePath) {
        self.root = root
        ancestors = root.ancestors.compactMap { FileNumber(of: $0) }
        excluded = FileNumber(of: storage)
        nextPosition = start.position
        nextDirectory = start.directory
    }

    /// The next rows for the manifest, at most so many; none at the end. Waits for the disk.
    ///
    /// - Throws: `CancellationError`; a ``TransferError`` of the class ``FailureClass/noSpace`` if this machine lacks descriptors.
    func next(_ limit: Int) throws -> ManifestBatch {
        var batch = ManifestBatch()
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
                try read(&stack[top], &batch)
            } else {
                stack.removeLast()
            }
        }
        return batch
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
            let stream = try DirectoryStream(opening: shown, followsLink: isLink)
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
            stack.append(Frame(row: row, path: path, file: stream.number, stream: stream))
            nextDirectory += 1
        } catch {
            guard error != .tooManyOpenFiles, error != .tooManyOpenFilesInSystem else {
                throw TransferError.sourceUnavailable(shown, errno: error.rawValue)
            }
            add(.failed, LocalFile.unavailable(shown, error))
        }
    }

    /// Reads the next chunk of a folder.
    private func read(_ frame: inout Frame, _ batch: inout ManifestBatch) throws {
        guard let stream = frame.stream else { return }
        do throws(Errno) {
            while frame.entries.count < Self.chunk {
                guard !Task.isCancelled else { break }
                guard let name = try stream.next() else {
                    frame.stream = nil
                    break
                }
                if let entry = FoundEntry(name, in: stream, at: frame.path, root.symbolicLinks) { frame.entries.append(entry) }
            }
        } catch {
            // What was read of it is sent; the error stands for the rest. A retry reads all of it again.
            frame.stream = nil
            let failure = TransferError.sourceUnavailable(FilePath(bytes: frame.path), errno: error.rawValue)
            add(.folder, frame.row.parent, frame.row.source, frame.row.destination, state: .failed, error: failure, &batch)
        }
        try Task.checkCancellation()
        frame.entries.sort { $1.name.lexicographicallyPrecedes($0.name) }
    }

    private func take(_ entry: FoundEntry, _ batch: inout ManifestBatch) throws {
        guard let frame = stack.last else { return }
        let source = Data(entry.name)
        switch entry.kind {
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
                state: state, error: error, symbolicLinks: kind == .folder ? root.symbolicLinks : nil))
        nextPosition += 1
        guard state != .skipped else { return }
        totals.files += 1
        totals.bytes += size
        if state == .failed { totals.failed += 1 }
    }
}
