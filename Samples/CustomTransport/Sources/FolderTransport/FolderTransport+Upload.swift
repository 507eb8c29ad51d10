import Foundation
import SystemPackage
public import TransferCore
import TransportSupport

/// What an upload has to be found by again.
private struct UploadCheckpoint: Codable {
    /// The part's name below the endpoint's folder.
    let part: [UInt8]
    /// Whether the file has its name, and all that is left to do is to remove the part.
    var isPlaced = false

    func vouching(for confirmed: Int64) throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(self), confirmed: confirmed)
    }
}

extension FolderTransport {
    func upload(
        _ source: UploadSource, _ attempt: FileAttempt, to folder: FilePath, _ reporter: AttemptReporter
    ) async throws -> TransferReceipt {
        // Opening compares it with what the queue looked at.
        let reader = try await FileReader.open(source, on: threads)
        let size = try await size(of: source)
        let time = source.growth == nil ? source.identity.modificationTime : nil
        let name = attempt.remotePath
        // With the transfer's ID in it, so that a late discard never meets the part of a newer life of the file.
        let part = Array(name.bytes.dropLast(name.lastComponent.count)) + Array(".tq-\(attempt.transferID).part".utf8)
        var stored =
            try attempt.checkpoint.map { try JSONDecoder().decode(UploadCheckpoint.self, from: $0.data) }
            ?? UploadCheckpoint(part: part)
        let destination = DownloadDestination(
            root: folder, name: FilePath(bytes: name.bytes), partName: FilePath(bytes: stored.part), overwrite: attempt.options.overwrite)
        if stored.isPlaced { try await remove(destination.partPath) }
        let isUpToDate = try await FileWriter.isUpToDate(destination, size: size, modificationTime: time, on: threads)
        if stored.isPlaced || isUpToDate { return TransferReceipt(bytes: size, remoteURL: destination.path.folderURL) }
        // Before there is a part, so that a discard finds it whatever happens to this process.
        if attempt.checkpoint == nil { try await reporter.save(stored.vouching(for: 0)) }
        do {
            let writer = try await FileWriter.open(destination, from: attempt.checkpoint?.confirmed ?? 0, size: size, on: threads)
            try await copy(from: reader, to: writer, size: size, reporter) { [stored] in try stored.vouching(for: $0) }
            try await reader.verifyUnchanged()
            try await writer.finish(size: size, modificationTime: time)
            // Until this is saved, the part tells that the file has its name: both are links to it.
            stored.isPlaced = true
            try await reporter.save(stored.vouching(for: size))
            try await remove(destination.partPath)
            return TransferReceipt(bytes: size, remoteURL: writer.finalPath.folderURL)
        } catch let error as TransferError where error.code == .diskFull {
            // It is the endpoint's disk.
            throw TransferError(.remoteFull, .remoteFull, error.message, cause: error.cause)
        }
    }

    /// How many bytes a source has; of a stream, once it is complete.
    private func size(of source: UploadSource) async throws -> Int64 {
        guard let growth = source.growth else { return source.size }
        try await growth.waitUntilComplete()
        switch growth.extent {
        case .complete(let size), .growing(let size): return size
        case .failed(let error): throw error
        }
    }

    private func remove(_ part: FilePath) async throws {
        try await threads.run {
            let code = unsafe part.withPlatformString { unsafe unlink($0) == 0 ? 0 : errno }
            guard code != 0, code != ENOENT else { return }
            throw TransferError(.transient, .notWritable, "\(part) can't be removed.", cause: Errno(rawValue: code).description)
        }
    }
}

extension FolderTransport: PartialDiscarding {
    /// Removes the part of an unfinished upload. Called by the queue, on a task of its own.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        // A checkpoint of a download refers to nothing in the folder.
        guard let stored = try? JSONDecoder().decode(UploadCheckpoint.self, from: checkpoint.data) else { return }
        try await remove(open(endpoint).pushing(FilePath(bytes: stored.part)))
    }
}
