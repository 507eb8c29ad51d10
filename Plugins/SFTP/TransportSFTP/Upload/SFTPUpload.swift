import Locking
import SystemPackage
import TransferCore
import TransportSupport

/// One attempt to upload one file. It writes to a part file, and renames the complete part file. If ``SFTPOptions/partFiles`` is false and the
/// overwrite policy is `always`, it writes directly to the final name.
struct SFTPUpload {
    let connection: PooledConnection
    /// The server's features, without syncs if too many syncs of this upload were interrupted.
    let features: SFTPFeatures
    /// Whether the server offers syncs, even if `features` omits them.
    private let offersSync: Bool
    private let interruptedSyncs: InterruptedSyncs
    let lender: ConnectionLender
    let paths: RemoteFilePaths
    /// The path of the part file, or the final path if there is no part file.
    let partPath: [UInt8]
    /// The part file in which another queue began the upload, if any. The other queue may still have this file open, so this upload must
    /// not write into it.
    var foreignPartFile: [UInt8]?
    let file: FileReader
    let options: AttemptOptions
    let server: SFTPServer
    /// The progress of earlier attempts; nil if there is no checkpoint of this transport.
    var earlierProgress: (checkpoint: UploadCheckpoint, confirmed: Int64)?
    /// The permissions of the source, or of the original file if the source is the queue's copy; nil for data from memory and streams.
    let sourceMode: UInt32?
    /// Whether this process made an earlier attempt since the last restart of the file or retry of its session.
    let isRepeated: Bool
    let threads: WorkerThreads
    let remainingPartFile: RemainingPartFile
    let reporter: AttemptReporter

    init(
        _ attempt: FileAttempt, _ server: SFTPServer, over connection: PooledConnection, _ features: SFTPFeatures,
        lender: ConnectionLender, from file: FileReader, on threads: WorkerThreads, leaving remainingPartFile: RemainingPartFile,
        reporting reporter: AttemptReporter
    ) throws(TransferError) {
        self.connection = connection
        self.lender = lender
        self.server = server
        self.file = file
        self.threads = threads
        self.remainingPartFile = remainingPartFile
        self.reporter = reporter
        paths = RemoteFilePaths(attempt.remotePath, at: server.address)
        options = attempt.options
        earlierProgress = attempt.checkpoint.flatMap { stored in UploadCheckpoint(stored).map { ($0, stored.confirmed) } }
        interruptedSyncs = InterruptedSyncs(earlierProgress?.checkpoint.interruptedSyncs)
        self.features = features.after(interruptedSyncs)
        offersSync = features.offers(.fsync)
        isRepeated = attempt.number > 1
        let source = file.source
        sourceMode = source.isSpooled ? source.originalPermissions.map { UInt32($0.rawValue) } : file.descriptor.mode
        if let earlierProgress {
            // Uses the path in the checkpoint, because the endpoint's options may have changed.
            let (stored, own) = ([UInt8](earlierProgress.checkpoint.part), try paths.partFile(of: attempt.partID))
            let isForeign =
                attempt.partID != attempt.transferID && earlierProgress.checkpoint.stage == .writing && stored != paths.final
                && stored != own
            foreignPartFile = isForeign ? stored : nil
            partPath = isForeign ? own : stored
        } else if server.options.partFiles || options.overwrite != .always {
            // With policies other than `always`, a file under the final name must never be incomplete.
            partPath = try paths.partFile(of: attempt.partID)
        } else {
            partPath = paths.final
        }
    }

    var writesFinalName: Bool { partPath == paths.final }

    var client: SFTPClient { connection.client }

    /// Uploads the file.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    func run() async throws -> TransferReceipt {
        do {
            return try await transfer()
        } catch let failure as StatusFailure where failure.status.isUnexplained {
            throw try await reason(for: failure)
        } catch let failure as StatusFailure {
            throw failure.transferError(paths.name, .upload, at: client.serverName)
        }
    }

    private func transfer() async throws -> TransferReceipt {
        let placing = PartFileRenaming(
            client: client, features: features, paths: paths, partPath: partPath, policy: options.overwrite, source: file.source)
        if let earlierProgress,
            !earlierProgress.checkpoint.isSound(earlierProgress.confirmed, for: file.source.growth == nil ? file.source.size : nil)
        {
            throw PartFileRenaming.lost(paths.name, at: client.serverName)
        }
        if let foreignPartFile { return try await replacing(foreignPartFile).transfer() }
        if let earlierProgress, earlierProgress.checkpoint.stage == .placing {
            let size = earlierProgress.confirmed
            if var receipt = try await placing.finishAfterLostResponse(earlierProgress.checkpoint, size: size) {
                reporter.report(sent: size, confirmed: size)
                receipt.checksum = earlierProgress.checkpoint.checksum
                await removeOtherPartFile(&receipt)
                return receipt
            }
            return try await moveIntoPlace(
                placing, size: size, checksum: earlierProgress.checkpoint.checksum, replacing: earlierProgress.checkpoint.existing)
        }
        var checkpoint = earlierProgress?.checkpoint ?? initialCheckpoint
        // Opening connections takes a while, and the upload nearly always needs them, so start before the check for an existing file.
        if checkpoint.ranges != nil { await lender.prepare(maximumWriters - 1) }
        if earlierProgress == nil, !writesFinalName, let existing = try await placing.existingFile() {
            if let receipt = try placing.receipt(keeping: existing) {
                reporter.report(sent: receipt.bytes, confirmed: receipt.bytes)
                return receipt
            }
            checkpoint.existing = FileVersion(existing)
        }
        // Save the checkpoint before the part file exists, so that the part file can be removed after a crash. Under the final name, an
        // existing file does not belong to this upload until it is opened, so save later.
        if earlierProgress == nil, !writesFinalName { try await reporter.save(checkpoint.encoded(confirmed: 0)) }
        let partFile = try await openPartFile(checkpoint, earlierProgress?.confirmed ?? 0, placing)
        do {
            if earlierProgress == nil, writesFinalName { try await reporter.save(checkpoint.encoded(confirmed: 0)) }
        } catch {
            client.close(partFile.handle)
            throw error
        }
        let size = file.source.growth == nil ? file.source.size : nil
        let progress = UploadProgress(partFile.checkpoint, from: partFile.confirmed, size: size, reporter: reporter)
        progress.begin()
        let writer = PartFileWriter(
            partFile.handle, at: client, features, of: file, updating: progress, schedule, on: threads, reporting: reporter)
        do {
            let mode = keepsMode ? sourceMode : partFile.checkpoint.mode
            var (size, warnings) = try await write(writer, progress, mode)
            let checksum = try await verify(size, &warnings)
            progress.end()
            var receipt = try await moveIntoPlace(placing, size: size, checksum: checksum, replacing: checkpoint.existing)
            receipt.warnings += partFile.warnings + warnings
            return receipt
        } catch {
            if !Self.dropsPartFile(error) { await writer.saveBeforeEnd() }
            writer.close()
            throw error
        }
    }

    /// Returns whether the part file is useless after an error.
    private static func dropsPartFile(_ error: any Error) -> Bool {
        guard let error = error as? TransferError else { return false }
        return error.failureClass == .resumeLost || error.failureClass == .sourceChanged
    }

    /// After a failed attempt, saves checkpoints more often, because this attempt may also end early.
    private var schedule: SyncSchedule {
        isRepeated ? SyncSchedule(at: .now, bytes: 8 << 20, interval: .seconds(1)) : SyncSchedule(at: .now)
    }

    private var initialCheckpoint: UploadCheckpoint {
        var checkpoint = UploadCheckpoint(part: partPath, final: paths.final, stage: .writing)
        if !writesFinalName { checkpoint.precedesPart = true }
        if maximumWriters > 1, file.source.growth == nil, file.source.size >= server.options.parallelThreshold {
            checkpoint.ranges = [UploadCheckpoint.Range(start: 0, end: file.source.size, confirmed: 0)]
        }
        return checkpoint
    }

    /// The maximum number of connections that send a large file in parallel.
    private var maximumWriters: Int { min(options.segmentsPerFile, server.options.maxConnections) }

    // MARK: Content

    private func write(
        _ writer: PartFileWriter, _ progress: UploadProgress, _ mode: UInt32?
    ) async throws -> (size: Int64, warnings: [String]) {
        if file.source.growth == nil { try await requireSpace(at: writer.handle, for: progress.rest(of: file.source.size)) }
        let size: Int64
        let end: PartFileWriter.End
        do {
            let written = try await writeAll(writer, progress)
            size = file.source.growth == nil ? file.source.size : written
            end = try await writer.finish(times: times, mode: mode, syncs: offersSync && interruptedSyncs.allowsFinalSync)
            try await file.verifyUnchanged()
        } catch let error as TransferError where error.failureClass == .sourceChanged {
            writer.close()
            await removePartFile()
            throw error
        } catch let failure as StatusFailure where failure.status.code == .failure {
            throw try await explain(failure, at: writer.handle)
        }
        guard end.size == nil || end.size == size || options.verification == .none else {
            throw TransferError(
                .resumeLost, .invalidResponse,
                "\(paths.name) has \(end.size ?? 0) bytes at \(client.serverName), but \(size) were sent. The upload restarts.")
        }
        var warnings: [String] = []
        if offersSync, !interruptedSyncs.allowsFinalSync {
            warnings.append(
                "Connections to \(client.serverName) broke before the server had synced \(paths.name), so the file was not synced. If the server crashes now, the file may be lost."
            )
        }
        if offersSync, interruptedSyncs.allowsFinalSync, interruptedSyncs.isUncertain {
            warnings.append(
                "Connections to \(client.serverName) broke while the server was syncing \(paths.name). If the server's disk failed then, the file may be damaged."
            )
        }
        if !end.acceptedTimes { warnings.append("\(client.serverName) refused the modification time of \(paths.name).") }
        if !end.acceptedMode, keepsMode { warnings.append("\(client.serverName) refused the permissions of \(paths.name).") }
        return (size, warnings)
    }

    /// - Returns: The position at which the given writer finished.
    private func writeAll(_ writer: PartFileWriter, _ progress: UploadProgress) async throws -> Int64 {
        guard progress.isShared, maximumWriters > 1 else { return try await writer.write() }
        let active = Locked(1)
        return try await withThrowingTaskGroup(of: Int64?.self) { group in
            group.addTask {
                defer { active.withLock { $0 -= 1 } }
                return try await writer.write()
            }
            for _ in 1..<maximumWriters {
                group.addTask {
                    try await lender.lend { connection, features in
                        active.withLock { $0 += 1 }
                        try await write(progress, over: connection, features)
                        // Decrease the count only after a success. After a failure, this writer's claimed bytes are missing, and the loop
                        // below must not return before it has received the error.
                        active.withLock { $0 -= 1 }
                    }
                    return nil
                }
            }
            var end: Int64?
            while let result = try await group.next() {
                end = result ?? end
                guard let end, !progress.hasMore, active.withLock({ $0 }) == 0 else { continue }
                // The other tasks only wait for a connection.
                group.cancelAll()
                return end
            }
            throw CancellationError()
        }
    }

    private func write(_ progress: UploadProgress, over connection: PooledConnection, _ features: SFTPFeatures) async throws {
        guard progress.hasMore else { return }
        let features = features.after(interruptedSyncs)
        let handle = try await connection.client.open(.open(partPath, [.write]))
        let writer = PartFileWriter(
            handle, at: connection.client, features, of: file, updating: progress, schedule, on: threads, reporting: reporter)
        do {
            _ = try await writer.write()
            _ = try await writer.finish()
            // Save now, because other writers may need much more time.
            try await writer.saveSynced()
        } catch {
            await writer.saveBeforeEnd()
            writer.close()
            throw error
        }
    }

    /// The modification time in seconds since 1970; nil to keep the server's time. Later sessions with the policies `different` and `newer`
    /// compare the times.
    private var times: UInt32? {
        guard file.source.growth == nil, server.options.keepTimes || options.overwrite == .different || options.overwrite == .newer else {
            return nil
        }
        return UInt32(exactly: file.source.identity.modificationSeconds)
    }
}
