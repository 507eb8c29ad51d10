import Foundation
import TransferCore
import TransportSupport

/// Resumes an upload in a new part file, because another queue may still have the earlier part file open.
extension SFTPUpload {
    /// Limits the bytes of one request, so that the server responds in time.
    private static let copySize: UInt64 = 32 << 20

    /// Copies the confirmed bytes of another queue's part file into the part file of this upload, and removes the other part file.
    ///
    /// A checkpoint names both part files while both can exist, so that a removal of the session removes both.
    ///
    /// - Parameter earlier: The path of the other queue's part file.
    /// - Returns: The upload that resumes in its own part file.
    /// - Throws: A `TransferError` of the class `resumeLost` if the server can't copy the bytes.
    func replacing(_ earlier: [UInt8]) async throws -> SFTPUpload {
        var upload = self
        upload.foreignPartFile = nil
        guard let earlierProgress else { return upload }
        var checkpoint = earlierProgress.checkpoint.withoutUnsynced
        // This is the part file of an unfinished copy.
        if let other = checkpoint.otherPart { try? await client.perform(.remove([UInt8](other))) }
        let size = checkpoint.neededSize(earlierProgress.confirmed)
        if size > 0 {
            checkpoint.otherPart = Data(partPath)
            try await reporter.save(checkpoint.encoded(confirmed: earlierProgress.confirmed))
            do {
                try await copy(UInt64(size), of: earlier, isHidden: keepsMode || checkpoint.mode != nil)
            } catch is StatusFailure {
                for path in [earlier, partPath] { try? await client.perform(.remove(path)) }
                throw TransferError(
                    .resumeLost, .uploadGone,
                    "\(client.serverName) can't copy the part file of \(paths.name), and another queue may still write into it. The upload restarts."
                )
            }
        }
        checkpoint.part = Data(partPath)
        checkpoint.otherPart = Data(earlier)
        checkpoint.precedesPart = size > 0 ? nil : true
        try await reporter.save(checkpoint.encoded(confirmed: earlierProgress.confirmed))
        if size > 0 { remainingPartFile.didCreate(partPath) }
        if (try? await client.removeIfPresent(earlier)) != nil { remainingPartFile.didRemove(earlier) }
        upload.earlierProgress = (checkpoint, earlierProgress.confirmed)
        return upload
    }

    /// - Throws: A ``StatusFailure`` if the server can't copy the bytes, or the earlier part file is too short.
    private func copy(_ size: UInt64, of earlier: [UInt8], isHidden: Bool) async throws {
        guard features.offers(.copyData) else { throw StatusFailure(Status(.unsupported)) }
        let source = try await client.open(.open(earlier, [.read]))
        defer { client.close(source) }
        let target = try await makePartFile(.permissions(isHidden ? NewFileModes.hidden : creationKey.requested))
        defer { client.close(target) }
        var position: UInt64 = 0
        while position < size {
            let end = min(size, position + Self.copySize)
            try await client.perform(.copyData(source, position..<end, to: target))
            reporter.reportActivity()
            position = end
        }
        guard try await client.attributes(.fstat(target)).size ?? 0 >= size else {
            throw StatusFailure(Status(.failure))
        }
        if features.offers(.fsync) { try await client.perform(.fsync(target)) }
    }
}
