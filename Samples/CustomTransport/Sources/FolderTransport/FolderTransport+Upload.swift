import Foundation
import SystemPackage
public import TransferCore
import TransportSupport

/// The content of an upload's checkpoint.
private struct UploadCheckpoint: Codable {
    /// The part file's path below the endpoint's folder.
    let part: [UInt8]
    /// Whether the file has its final name, and only the part file's name must still be removed.
    var isPlaced = false

    func checkpoint(confirmed: Int64) throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(self), confirmed: confirmed)
    }
}

extension FolderTransport {
    func upload(
        _ source: UploadSource, _ attempt: FileAttempt, to folder: FilePath, _ reporter: AttemptReporter
    ) async throws -> TransferReceipt {
        // Opening compares the file with the identity (size, time and file number) that the queue stored for it.
        let reader = try await FileReader.open(source, on: threads)
        let size = try await size(of: source)
        let time = source.growth == nil ? source.identity.modificationTime : nil
        let name = attempt.remotePath
        // The part file's name contains the transfer's ID, so a late call of `discard` never removes the part file of a restarted upload. If another
        // queue has worked on the transfer (in a fleet), `partID` differs from this ID, so that two queues never write into the same part file.
        let partName = Array(name.bytes.dropLast(name.lastComponent.count)) + Array(".tq-\(attempt.partID).part".utf8)
        var stored =
            try attempt.checkpoint.map { try JSONDecoder().decode(UploadCheckpoint.self, from: $0.data) }
            ?? UploadCheckpoint(part: partName)
        // The other queue, which created this part file, may still be writing to the part file.
        if attempt.partID != attempt.transferID, stored.part != partName, (attempt.checkpoint?.confirmed ?? 0) < size {
            throw TransferError(
                .resumeLost, .uploadGone, "The upload of \(name) restarts, because another queue may still write into its part file.")
        }
        let destination = DownloadDestination(
            root: folder, name: FilePath(bytes: name.bytes), partName: FilePath(bytes: stored.part), overwrite: attempt.options.overwrite)
        if stored.isPlaced { try await remove(destination.partPath) }
        let isUpToDate = try await FileWriter.isUpToDate(destination, size: size, modificationTime: time, on: threads)
        if stored.isPlaced || isUpToDate { return TransferReceipt(bytes: size, remoteURL: destination.path.folderURL) }
        // Save a checkpoint before the part file exists, so that `discard` can remove the part file even if this process is killed now.
        if attempt.checkpoint == nil { try await reporter.save(stored.checkpoint(confirmed: 0)) }
        do {
            let writer = try await FileWriter.open(destination, from: attempt.checkpoint?.confirmed ?? 0, size: size, on: threads)
            try await copy(from: reader, to: writer, size: size, reporter) { [stored] in try stored.checkpoint(confirmed: $0) }
            try await reader.verifyUnchanged()
            try await writer.finish(size: size, modificationTime: time)
            // Until this checkpoint is saved, the part file shows that the upload is complete: both names are links to the same file.
            stored.isPlaced = true
            try await reporter.save(stored.checkpoint(confirmed: size))
            try await remove(destination.partPath)
            return TransferReceipt(bytes: size, remoteURL: writer.finalPath.folderURL)
        } catch let error as TransferError where error.code == .diskFull {
            // The full disk belongs to the endpoint.
            throw TransferError(.remoteFull, .remoteFull, error.message, cause: error.cause)
        }
    }

    /// The size of a source in bytes. Waits for the end of a stream.
    private func size(of source: UploadSource) async throws -> Int64 {
        guard let growth = source.growth else { return source.size }
        try await growth.waitUntilComplete()
        switch growth.extent {
        case .complete(let size), .growing(let size): return size
        case .failed(let error): throw error
        }
    }

    private func remove(_ partFile: FilePath) async throws {
        try await threads.run {
            let code = unsafe partFile.withPlatformString { unsafe unlink($0) == 0 ? 0 : errno }
            guard code != 0, code != ENOENT else { return }
            throw TransferError(.transient, .notWritable, "Cannot remove \(partFile).", cause: Errno(rawValue: code).description)
        }
    }
}

extension FolderTransport: PartialDiscarding {
    /// Removes the part file of an unfinished upload. The queue calls this method on a separate task.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        // A download has nothing to remove in the folder.
        guard let stored = try? JSONDecoder().decode(UploadCheckpoint.self, from: checkpoint.data) else { return }
        try await remove(open(endpoint).pushing(FilePath(bytes: stored.part)))
    }
}
