import TransferCore
import TransportSupport

/// Creates, reopens and checks the part file of an upload.
extension SFTPUpload {
    /// The minimum number of bytes for which to request the free space. For fewer bytes, a failed write reveals a full disk just as fast.
    private static let spaceThreshold: Int64 = 1 << 20

    struct OpenPartFile {
        let handle: Handle
        let checkpoint: UploadCheckpoint
        let confirmed: Int64
        var warnings: [String] = []
    }

    func openPartFile(_ checkpoint: UploadCheckpoint, _ confirmed: Int64, _ placing: PartFileRenaming) async throws -> OpenPartFile {
        guard confirmed == 0, checkpoint.synced(confirmed) == nil else { return try await resumePartFile(checkpoint, confirmed) }
        let key = creationKey
        // Other users must not read the part file. It gets its final permissions before it is renamed.
        let isHidden = !writesFinalName && (keepsMode || client.newFileModes.isKnown(key))
        let handle = try await makePartFileAndFolders(placing, .permissions(isHidden ? NewFileModes.hidden : key.requested))
        if !writesFinalName { remainingPartFile.didCreate(partPath) }
        var checkpoint = checkpoint
        checkpoint.precedesPart = nil
        do {
            if !writesFinalName, !keepsMode {
                checkpoint.mode = try await client.newFileModes.hide(handle, key, isHidden: isHidden, at: client)
            }
        } catch {
            client.close(handle)
            throw error
        }
        return OpenPartFile(handle: handle, checkpoint: checkpoint, confirmed: 0)
    }

    private func makePartFileAndFolders(_ placing: PartFileRenaming, _ creation: FileAttributes) async throws -> Handle {
        do {
            return try await makePartFile(creation)
        } catch let failure as StatusFailure where failure.status.code == .failure && writesFinalName {
            guard try await client.attributesIfPresent(partPath)?.kind == .folder else { throw failure }
            throw placing.folderExists
        } catch let failure as StatusFailure where failure.status.code.meansMissing && !paths.parents.isEmpty {
            let creations = paths.parents.map { client.begin(.mkdir($0)) }
            for pending in creations { _ = try await pending.response() }
            return try await makePartFile(creation)
        }
    }

    var keepsMode: Bool { server.options.keepModes && sourceMode != nil }

    /// The permissions of a new file depend on the requested mode and, because of access lists, on the folder.
    var creationKey: NewFileModes.Key {
        let folder = partPath.lastIndex(of: UInt8(ascii: "/")).map { Array(partPath[..<$0]) } ?? []
        return NewFileModes.Key(folder: folder, requested: (sourceMode ?? 0o666) & 0o666)
    }

    func makePartFile(_ creation: FileAttributes) async throws -> Handle {
        // If the file must be read back later, check now whether the server allows reading.
        let isReadBack = options.verification == .checksum ? try await connection.checksums.algorithm() == nil : false
        let mode: OpenMode = isReadBack ? [.read, .write, .create] : [.write, .create]
        if writesFinalName { return try await client.open(.open(partPath, mode.union(.truncate), creation)) }
        // An existing part file is from an earlier attempt, or another user created it to redirect the content.
        let removal = client.begin(.remove(partPath))
        let opening = client.begin(.open(partPath, mode.union(.exclusive), creation))
        do {
            if case .status(let status) = try await removal.response(), status.code == .ok || status.code.meansMissing {
                remainingPartFile.didRemove(partPath)
            }
        } catch {
            opening.abandonOpening()
            throw error
        }
        do {
            return try await opening.handle()
        } catch let failure as StatusFailure where isReadBack && failure.status.code == .permissionDenied {
            // If the server now allows opening the file for writing, it forbids only reading.
            client.close(try await client.open(.open(partPath, [.write, .create, .exclusive], creation)))
            try await client.perform(.remove(partPath))
            throw ContentComparison.impossible(paths.name, at: client.serverName, failure)
        }
    }

    /// Bytes that the server acknowledged before the connection broke count as confirmed on three conditions: the part file is large enough,
    /// its last bytes equal the source's, and the server can sync it. Otherwise, a power failure may have destroyed the bytes.
    private func resumePartFile(_ checkpoint: UploadCheckpoint, _ confirmed: Int64) async throws -> OpenPartFile {
        let handle: Handle
        do {
            handle = try await openForWriting()
        } catch let failure as StatusFailure where failure.status.code.meansMissing {
            throw PartFileRenaming.lost(paths.name, at: client.serverName)
        }
        do {
            let size = try await client.attributes(.fstat(handle)).size ?? 0
            guard size >= UInt64(checkpoint.neededSize(confirmed)) else { throw PartFileRenaming.lost(paths.name, at: client.serverName) }
            if confirmed == file.source.size { reporter.reportWaiting() }
            var partFile = OpenPartFile(handle: handle, checkpoint: checkpoint, confirmed: confirmed)
            if let more = checkpoint.synced(confirmed) {
                let isLongEnough = size >= UInt64(more.checkpoint.neededSize(more.confirmed))
                if isLongEnough, let warnings = try await sync(handle, checkpoint, confirmed) {
                    var checkpoint = more.checkpoint
                    checkpoint.interruptedSyncs = InterruptedSyncs(checkpoint.interruptedSyncs).decremented.stored
                    partFile = OpenPartFile(handle: handle, checkpoint: checkpoint, confirmed: more.confirmed, warnings: warnings)
                } else {
                    // A server reports lost bytes only once, so a later sync would succeed although bytes are lost.
                    partFile = OpenPartFile(handle: handle, checkpoint: checkpoint.withoutUnsynced, confirmed: confirmed)
                }
                try await reporter.save(partFile.checkpoint.encoded(confirmed: partFile.confirmed))
            }
            // No checkpoint covers the bytes beyond this size.
            let needed = partFile.checkpoint.neededSize(partFile.confirmed)
            if size > UInt64(needed) { try await client.perform(.fsetstat(handle, .size(needed))) }
            partFile.warnings += try await checkUnsynced(partFile.checkpoint, partFile.confirmed)
            return partFile
        } catch {
            client.close(handle)
            throw error
        }
    }

    /// Syncs the acknowledged bytes, and compares the last of them with the source.
    ///
    /// - Returns: The warnings for the receipt; nil if the content differs, or the server can't sync.
    private func sync(_ handle: Handle, _ checkpoint: UploadCheckpoint, _ confirmed: Int64) async throws -> [String]? {
        guard features.offers(.fsync) else { return nil }
        // A server reports lost bytes only once. If this attempt does not learn the result, no later attempt can.
        var interrupted = checkpoint.withoutUnsynced
        interrupted.interruptedSyncs = InterruptedSyncs(checkpoint.interruptedSyncs).incremented.stored
        try await reporter.save(interrupted.encoded(confirmed: confirmed))
        let sync = client.begin(.fsync(handle))
        do {
            guard let warnings = try await warningsIfSame(RecentBlocks(checkpoint.unsynced(confirmed), only: Self.tailSize)) else {
                return nil
            }
            try await sync.success()
            return warnings
        } catch is StatusFailure {
            return nil
        }
    }

    /// The number of bytes to read back from the end of each range. A server that lost bytes of a range also lost the newest ones.
    private static let tailSize: Int64 = 256 << 10

    private func openForWriting() async throws -> Handle {
        do {
            return try await client.open(.open(partPath, [.write]))
        } catch let failure as StatusFailure where failure.status.code == .permissionDenied && !writesFinalName {
            // The part file may already have the permissions of a read-only file.
            try await client.perform(.setstat(partPath, .permissions(0o600)))
            return try await client.open(.open(partPath, [.write]))
        }
    }

    /// If the server can't sync, compares the newest confirmed bytes with the source, because a power failure may have destroyed some of
    /// them. Skips streams, whose first bytes may no longer be available. Compares nothing if ``SFTPOptions/sync`` is false.
    ///
    /// - Returns: The warnings for the receipt.
    /// - Throws: A `TransferError` of the class `resumeLost` if the content differs.
    private func checkUnsynced(_ checkpoint: UploadCheckpoint, _ confirmed: Int64) async throws -> [String] {
        guard confirmed > 0, server.options.sync, !features.offers(.fsync), file.source.growth == nil else { return [] }
        let ranges = checkpoint.ranges.map { $0.map { $0.start..<$0.confirmed } } ?? [0..<confirmed]
        // On an unstable network, a longer comparison would take all the time between two failures.
        let blocks = isRepeated ? RecentBlocks(ranges, only: Self.tailSize) : RecentBlocks(ranges)
        guard let warnings = try await warningsIfSame(blocks) else { throw PartFileRenaming.lost(paths.name, at: client.serverName) }
        return warnings
    }

    /// - Returns: The warnings for the receipt; nil if a block differs from the source.
    private func warningsIfSame(_ blocks: RecentBlocks) async throws -> [String]? {
        let comparison = ContentComparison(connection: connection, features: features, threads: threads, reporter: reporter)
        do {
            return try await comparison.isSame(blocks, partPath, paths.name, as: LocalContent(file, size: file.source.size)) ? [] : nil
        } catch let error as TransferError where error.failureClass == .unsupported {
            return [
                "\(client.serverName) does not allow \(paths.name) to be read back, so its content from before the interruption was not compared."
            ]
        }
    }

    /// Ignores errors, because the caller throws another error.
    func removePartFile() async {
        guard (try? await client.perform(.remove(partPath))) != nil else { return }
        remainingPartFile.didRemove(partPath)
    }

    // MARK: Space

    /// - Parameter bytes: The number of bytes that remain to be sent.
    func requireSpace(at handle: Handle, for bytes: Int64) async throws {
        guard bytes >= Self.spaceThreshold, let space = try await client.space(at: handle, partPath), space.available < UInt64(bytes) else {
            return
        }
        // The bytes of an earlier attempt stay, so the upload can resume when there is space again.
        if earlierProgress == nil || earlierProgress?.confirmed == 0 { await removePartFile() }
        throw TransferError(
            .remoteFull, .remoteFull,
            "\(client.serverName) has \(space.available) bytes free, but \(bytes) bytes of \(paths.name) remain to be sent.")
    }

    /// OpenSSH has no status for a full disk, so this method checks the free space after an unexplained failure.
    func explain(_ failure: StatusFailure, at handle: Handle) async throws -> StatusFailure {
        var failure = failure
        if let space = try await client.space(at: handle, partPath), space.available < UInt64(features.writeSize) {
            failure.status.code = .noSpace
        }
        return failure
    }
}
