import TransferCore
import TransportSupport

extension SFTPUpload {
    /// Compares the part file with the source if the session requires checksums.
    ///
    /// - Returns: The checksum of the part file on the server; nil if the session requires none.
    func verify(_ size: Int64, _ warnings: inout [String]) async throws -> String? {
        guard options.verification == .checksum else { return nil }
        let comparison = ContentComparison(connection: connection, features: features, threads: threads, reporter: reporter)
        let outcome = try await comparison.compare(partPath, paths.name, with: LocalContent(file, size: size))
        reporter.reportWaiting()
        warnings += outcome.warnings
        if let digest = outcome.digest { return digest.text }
        await removePartFile()
        // A changed source also explains the difference, so report the change in this case.
        try await file.verifyUnchanged()
        throw TransferError(
            .resumeLost, .checksumMismatch,
            "\(paths.name) at \(client.serverName) differs from its source. The remote copy was removed, and the upload restarts.")
    }

    /// Files up to this size in bytes are renamed quickly by every server.
    private static let quickSize: Int64 = 1 << 20

    /// Renames the part file to the final name, unless the upload writes directly to the final name.
    func moveIntoPlace(
        _ placing: PartFileRenaming, size: Int64, checksum: String?, replacing existing: FileVersion?
    ) async throws -> TransferReceipt {
        var receipt: TransferReceipt
        if writesFinalName {
            receipt = placing.receipt(bytes: size, partPath)
        } else {
            receipt = try await placing.place(size: size) { final in
                var checkpoint = UploadCheckpoint(part: partPath, final: final, stage: .placing, checksum: checksum)
                checkpoint.otherPart = earlierProgress?.checkpoint.otherPart
                checkpoint.existing = existing
                try await reporter.save(checkpoint.encoded(confirmed: size))
                // Some servers rename a file by copying it.
                if size > Self.quickSize { reporter.reportWaiting() }
            }
            await removeOtherPartFile(&receipt)
        }
        receipt.checksum = checksum
        reporter.report(sent: size, confirmed: size)
        return receipt
    }

    /// The other queue may have created its part file again after this upload removed it. If the removal fails, the receipt contains a checkpoint
    /// with which the queue removes the file later.
    func removeOtherPartFile(_ receipt: inout TransferReceipt) async {
        guard let other = earlierProgress?.checkpoint.otherPart else { return }
        do {
            try await client.removeIfPresent([UInt8](other))
        } catch {
            receipt.leftovers = try? UploadCheckpoint(part: [UInt8](other), final: paths.final, stage: .writing).encoded(confirmed: 0)
        }
    }
}
