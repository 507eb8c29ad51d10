public import Foundation
import Locking
import TransferCore
import TransportSupport

extension MemoryTransport {
    /// Creates a remote file for downloads. If a file with this name exists, replaces the file, and unfinished downloads of the old file
    /// can't resume.
    ///
    /// Complete uploads can also be downloaded by their names.
    ///
    /// - Parameters:
    ///   - content: The content of the file.
    ///   - path: The remote name of the file.
    ///   - modificationTime: The reported modification time, in nanoseconds since 1970; nil for none.
    ///   - reportsSize: Whether the other end reports the size before the download is complete.
    public func provide(_ content: Data, as path: String, modificationTime: Int64? = nil, reportsSize: Bool = true) {
        state.withLock { $0.store.provide(content, as: path, modificationTime: modificationTime, reportsSize: reportsSize) }
    }

    func receive(_ attempt: FileAttempt, _ index: Int, _ reporter: AttemptReporter, _ fault: MemoryFault?) async throws -> TransferReceipt {
        let destination = try attempt.destination
        let path = attempt.remotePath.description
        if fault == .forget { state.withLock { $0.store.touch(path) } }
        let file = try find(attempt)
        let size = Int64(file.content.count)
        var receipt = TransferReceipt(bytes: size, remoteURL: attempt.endpoint.address + path)
        let isUpToDate = try await FileWriter.isUpToDate(
            destination, size: file.reportsSize ? size : nil, modificationTime: file.modificationTime, on: threads)
        if file.reportsSize || isUpToDate { reporter.report(total: size) }
        if isUpToDate {
            reporter.report(sent: size, confirmed: size)
            return receipt
        }
        let writer = try await FileWriter.open(
            destination, from: attempt.checkpoint?.confirmed ?? 0, size: file.reportsSize ? size : nil, on: threads)
        var position = writer.start
        var confirmed = position
        var chunks = 0
        state.withLock { $0.attempts[index].startOffset = position }
        reporter.report(sent: position, confirmed: confirmed)
        let cut: Int64? = if case .cut(let bytes) = fault { position + max(0, bytes) } else { nil }
        try await pass(path, at: position)
        while position < size {
            try Task.checkCancellation()
            if let cut, position >= cut { throw connectionLost(attempt, "received") }
            let wanted = min(
                Int64(chunkSize), size - position, nextGate(path, after: position) - position, cut.map { $0 - position } ?? .max)
            let allowance = reporter.allowance(upTo: Int(wanted))
            guard allowance.bytes > 0 else {
                try await Task.sleep(for: allowance.retryAfter)
                continue
            }
            let chunk = try find(attempt, version: file.version).content
                .dropFirst(Int(position)).prefix(min(Int(wanted), allowance.bytes))
            try await writer.write(Data(chunk), at: position)
            position += Int64(chunk.count)
            state.withLock { $0.attempts[index].bytesMoved += Int64(chunk.count) }
            reporter.report(sent: position, confirmed: confirmed)
            if let cut, position >= cut { throw connectionLost(attempt, "received") }
            chunks += 1
            if chunks.isMultiple(of: chunksPerCheckpoint) || position == size {
                // A transport over a network should call syncIfDue(upTo:) instead: otherwise, waiting for the disk would delay the network.
                try await writer.sync(upTo: position)
                try await reporter.save(Checkpoint(data: Data(file.version.utf8), confirmed: position))
                confirmed = position
                reporter.report(sent: position, confirmed: confirmed)
            }
            try await pass(path, at: position)
        }
        try Task.checkCancellation()
        try await writer.finish(size: size, modificationTime: file.modificationTime)
        if writer.finalPath != destination.path { receipt.localPath = writer.finalPath }
        return receipt
    }

    /// Returns the current remote file.
    ///
    /// - Parameter version: The version that the file must have; nil for the version in the attempt's checkpoint, if any.
    /// - Throws: A ``TransferError``. Its class is ``FailureClass/resumeLost`` if the file has another version.
    private func find(_ attempt: FileAttempt, version: String? = nil) throws(TransferError) -> MemoryStore.RemoteFile {
        let path = attempt.remotePath.description
        guard let file = state.withLock({ $0.store.remoteFile(path) }) else {
            if state.withLock({ $0.store.entries(of: path, resolvesLinks: false) }) != nil {
                throw TransferError(.permanent, .isFolder, "\(path) is a folder on the server.")
            }
            throw TransferError(.permanent, .noSuchRemoteFile, "There is no file \(attempt.remotePath) on the server.")
        }
        let known = version ?? attempt.checkpoint.map { String(decoding: $0.data, as: UTF8.self) } ?? file.version
        guard file.version == known else {
            throw TransferError(.resumeLost, .uploadGone, "\(attempt.remotePath) changed on the server. The download restarts.")
        }
        return file
    }
}
