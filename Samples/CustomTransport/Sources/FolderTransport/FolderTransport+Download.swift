import Foundation
import SystemPackage
import TransferCore
import TransportSupport

extension FolderTransport {
    func download(
        to destination: DownloadDestination, _ attempt: FileAttempt, from folder: FilePath, _ reporter: AttemptReporter
    ) async throws -> TransferReceipt {
        let path = folder.pushing(FilePath(bytes: attempt.remotePath.bytes))
        do {
            let identity = try await threads.run { try SourceIdentity(ofFileAt: path) }
            let (size, time) = (identity.size, identity.modificationTime)
            if let checkpoint = attempt.checkpoint {
                // Resume only if the file has not changed since the part file was copied from it.
                let earlier = try JSONDecoder().decode(SourceIdentity.self, from: checkpoint.data)
                guard identity.difference(from: earlier) == nil else {
                    throw TransferError(.resumeLost, .uploadGone, "\(path) changed since part of it was received. The download restarts.")
                }
            }
            reporter.report(total: size)
            var receipt = TransferReceipt(bytes: size, remoteURL: path.folderURL)
            if try await FileWriter.isUpToDate(destination, size: size, modificationTime: time, on: threads) { return receipt }
            let reader = try await FileReader.open(UploadSource(path: path, identity: identity), on: threads)
            let writer = try await FileWriter.open(destination, from: attempt.checkpoint?.confirmed ?? 0, size: size, on: threads)
            let version = try JSONEncoder().encode(identity)
            try await copy(from: reader, to: writer, size: size, reporter) { Checkpoint(data: version, confirmed: $0) }
            try await reader.verifyUnchanged()
            try await writer.finish(size: size, modificationTime: time)
            if writer.finalPath != destination.path { receipt.localPath = writer.finalPath }
            return receipt
        } catch let error as TransferError where error.failureClass == .sourceLost {
            // The classes `sourceLost` and `sourceChanged` describe the app's own files, but this file is on the endpoint.
            throw TransferError(.permanent, .noSuchRemoteFile, error.message, cause: error.cause)
        } catch let error as TransferError where error.failureClass == .sourceChanged {
            throw TransferError(.resumeLost, .uploadGone, error.message, cause: error.cause)
        }
    }
}
