import Locking
import SystemPackage
import TransferCore
import TransportSupport

/// One attempt to upload one file. It writes to a part file, and renames the part file when the content is complete. If
/// ``SFTPOptions/partFiles`` is false and the overwrite policy is `always`, it writes directly to the final name.
struct SFTPUpload {
    let connection: PooledConnection
    /// The server's features, without syncs if too many syncs of this upload were interrupted.
    let features: SFTPFeatures
    /// Whether the server offers syncs.
    private let offersSync: Bool
    private let interruptedSyncs: InterruptedSyncs
    let others: ConnectionLender
    let paths: RemoteFilePaths
    let part: [UInt8]
    /// The part file in which another queue began the upload; nil if no other queue began it. The other queue may still have this file open, so this
    /// upload must not write into it.
    var foreignPart: [UInt8]?
    let file: FileReader
    let options: AttemptOptions
    let server: SFTPServer
    /// The progress of an earlier attempt; nil if there is no checkpoint of this transport.
    var known: (checkpoint: UploadCheckpoint, confirmed: Int64)?
    /// The permissions of the source, or of the file of which the source is the queue's copy; nil for data from memory and streams.
    let sourceMode: UInt32?
    /// Whether ``FileAttempt/number`` counts an earlier attempt. The count begins again in a new process, or, for example, when the file
    /// restarts or its session is retried.
    let isRepeated: Bool
    let threads: WorkerThreads
    /// The part file on the server, for the error of the attempt.
    let remainingPart: RemainingPart
    let reporter: AttemptReporter

    init(
        _ attempt: FileAttempt, _ server: SFTPServer, over connection: PooledConnection, _ features: SFTPFeatures,
        others: ConnectionLender, from file: FileReader, on threads: WorkerThreads, leaving remainingPart: RemainingPart,
        reporting reporter: AttemptReporter
    ) throws(TransferError) {
        self.connection = connection
        self.others = others
        self.server = server
        self.file = file
        self.threads = threads
        self.remainingPart = remainingPart
        self.reporter = reporter
        paths = RemoteFilePaths(attempt.remotePath, at: server.address)
        options = attempt.options
        known = attempt.checkpoint.flatMap { stored in UploadCheckpoint(stored).map { ($0, stored.confirmed) } }
        interruptedSyncs = InterruptedSyncs(known?.checkpoint.interruptedSyncs)
        self.features = features.after(interruptedSyncs)
        offersSync = features.offers(.fsync)
        isRepeated = attempt.number > 1
        let source = file.source
        sourceMode = source.isSpooled ? source.originalPermissions.map { UInt32($0.rawValue) } : file.descriptor.mode
        if let known {
            // Uses the path in the checkpoint, because the account's options may have changed.
            let (stored, own) = ([UInt8](known.checkpoint.part), try paths.part(of: attempt.partID))
            let isForeign =
                attempt.partID != attempt.transferID && known.checkpoint.stage == .writing && stored != paths.final && stored != own
            foreignPart = isForeign ? stored : nil
            part = isForeign ? own : stored
        } else if server.options.partFiles || options.overwrite != .always {
            // With policies other than `always`, a file under the final name must never be incomplete.
            part = try paths.part(of: attempt.partID)
        } else {
            part = paths.final
        }
    }

    /// Whether the upload writes directly to the final name, without a part file.
    var writesFinalName: Bool { part == paths.final }

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
        let placing = PartPlacing(
            client: client, features: features, paths: paths, part: part, policy: options.overwrite, source: file.source)
        if let known, !known.checkpoint.isSound(known.confirmed, for: file.source.growth == nil ? file.source.size : nil) {
            throw PartPlacing.lost(paths.name, at: client.serverName)
        }
        if let foreignPart { return try await replacing(foreignPart).transfer() }
        if let known, known.checkpoint.stage == .placing {
            let size = known.confirmed
            if var receipt = try await placing.finishAfterLostResponse(known.checkpoint, size: size) {
                reporter.report(sent: size, confirmed: size)
                receipt.checksum = known.checkpoint.checksum
                await removeOtherPart(&receipt)
                return receipt
            }
            return try await moveIntoPlace(
                placing, size: size, checksum: known.checkpoint.checksum, replacing: known.checkpoint.existing)
        }
        var checkpoint = known?.checkpoint ?? initialCheckpoint
        // Starts to open connections before the check for an existing file, because opening takes a while, and the upload nearly always
        // needs the connections.
        if checkpoint.ranges != nil { await others.prepare(maximumWriters - 1) }
        if known == nil, !writesFinalName, let existing = try await placing.existingFile() {
            if let receipt = try placing.receipt(keeping: existing) {
                reporter.report(sent: receipt.bytes, confirmed: receipt.bytes)
                return receipt
            }
            checkpoint.existing = FileVersion(existing)
        }
        // Saves the checkpoint before the part file exists, so the part file can be removed after a crash. Without a part file, saves the
        // checkpoint after opening the file. Until then, a file with the final name does not belong to this upload.
        if known == nil, !writesFinalName { try await reporter.save(checkpoint.encoded(confirmed: 0)) }
        let part = try await openPart(checkpoint, known?.confirmed ?? 0, placing)
        do {
            if known == nil, writesFinalName { try await reporter.save(checkpoint.encoded(confirmed: 0)) }
        } catch {
            client.close(part.handle)
            throw error
        }
        let size = file.source.growth == nil ? file.source.size : nil
        let record = UploadRecord(part.checkpoint, from: part.confirmed, size: size, reporter: reporter)
        record.begin()
        let writer = PartWriter(
            part.handle, at: client, features, of: file, recording: record, schedule, on: threads, reporting: reporter)
        do {
            let mode = keepsMode ? sourceMode : part.checkpoint.mode
            var (size, warnings) = try await write(writer, record, mode)
            let checksum = try await verify(size, &warnings)
            record.end()
            var receipt = try await moveIntoPlace(placing, size: size, checksum: checksum, replacing: checkpoint.existing)
            receipt.warnings += part.warnings + warnings
            return receipt
        } catch {
            if !Self.dropsPart(error) { await writer.saveBeforeEnd() }
            writer.close()
            throw error
        }
    }

    /// Returns whether the part file is useless after an error.
    private static func dropsPart(_ error: any Error) -> Bool {
        guard let error = error as? TransferError else { return false }
        return error.failureClass == .resumeLost || error.failureClass == .sourceChanged
    }

    /// Decides when to save checkpoints: more often after an earlier attempt failed or was interrupted, because this attempt may also end
    /// early.
    private var schedule: SyncSchedule {
        isRepeated ? SyncSchedule(at: .now, bytes: 8 << 20, interval: .seconds(1)) : SyncSchedule(at: .now)
    }

    /// The checkpoint for a first attempt.
    private var initialCheckpoint: UploadCheckpoint {
        var checkpoint = UploadCheckpoint(part: part, final: paths.final, stage: .writing)
        if !writesFinalName { checkpoint.precedesPart = true }
        if maximumWriters > 1, file.source.growth == nil, file.source.size >= server.options.parallelThreshold {
            checkpoint.ranges = [UploadCheckpoint.Range(start: 0, end: file.source.size, confirmed: 0)]
        }
        return checkpoint
    }

    /// The maximum number of connections that send a large file in parallel.
    private var maximumWriters: Int { min(options.segmentsPerFile, server.options.maxConnections) }

    // MARK: Content

    private func write(_ writer: PartWriter, _ record: UploadRecord, _ mode: UInt32?) async throws -> (size: Int64, warnings: [String]) {
        if file.source.growth == nil { try await requireSpace(at: writer.handle, for: record.rest(of: file.source.size)) }
        let size: Int64
        let end: PartWriter.End
        do {
            let written = try await writeAll(writer, record)
            size = file.source.growth == nil ? file.source.size : written
            end = try await writer.finish(times: times, mode: mode, syncs: offersSync && interruptedSyncs.allowsFinalSync)
            try await file.verifyUnchanged()
        } catch let error as TransferError where error.failureClass == .sourceChanged {
            // Removes the part file, because its content is incomplete or a mix of two versions of the source.
            writer.close()
            await removePart()
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
                "Connections to \(client.serverName) broke before it had synced \(paths.name), so it was not synced. If the server crashes now, the file may be lost."
            )
        }
        if offersSync, interruptedSyncs.allowsFinalSync, interruptedSyncs.isUncertain {
            warnings.append(
                "Connections to \(client.serverName) broke while it synced \(paths.name). If its disk failed then, the file may be damaged."
            )
        }
        if !end.acceptedTimes { warnings.append("\(client.serverName) refused the modification time of \(paths.name).") }
        if !end.acceptedMode, keepsMode { warnings.append("\(client.serverName) refused the permissions of \(paths.name).") }
        return (size, warnings)
    }

    /// Writes the whole content with the given writer. Other writers help over their own connections, if connections are available in time.
    ///
    /// - Returns: The position at which the given writer finished.
    private func writeAll(_ writer: PartWriter, _ record: UploadRecord) async throws -> Int64 {
        guard record.isShared, maximumWriters > 1 else { return try await writer.write() }
        let active = Locked(1)
        return try await withThrowingTaskGroup(of: Int64?.self) { group in
            group.addTask {
                defer { active.withLock { $0 -= 1 } }
                return try await writer.write()
            }
            for _ in 1..<maximumWriters {
                group.addTask {
                    try await others.lend { connection, features in
                        active.withLock { $0 += 1 }
                        try await write(record, over: connection, features)
                        // Decrease the count only after a success. After a failure, the bytes that this writer claimed are missing, so the
                        // loop below must not return before it has received the error.
                        active.withLock { $0 -= 1 }
                    }
                    return nil
                }
            }
            var end: Int64?
            while let result = try await group.next() {
                end = result ?? end
                guard let end, !record.hasMore, active.withLock({ $0 }) == 0 else { continue }
                // All content has been sent, so cancel the tasks that still wait for a connection.
                group.cancelAll()
                return end
            }
            throw CancellationError()
        }
    }

    private func write(_ record: UploadRecord, over connection: PooledConnection, _ features: SFTPFeatures) async throws {
        guard record.hasMore else { return }
        let features = features.after(interruptedSyncs)
        let handle = try await connection.client.open(.open(part, [.write]))
        let writer = PartWriter(
            handle, at: connection.client, features, of: file, recording: record, schedule, on: threads, reporting: reporter)
        do {
            _ = try await writer.write()
            _ = try await writer.finish()
            // Saves a checkpoint now, because other writers may need much more time.
            try await writer.saveSynced()
        } catch {
            await writer.saveBeforeEnd()
            writer.close()
            throw error
        }
    }

    /// The modification time to set on the server, in seconds since 1970; nil to set none. Set if the endpoint's options keep times, and
    /// with the overwrite policies `different` and `newer`, because later sessions with these policies compare the times.
    private var times: UInt32? {
        guard file.source.growth == nil, server.options.keepTimes || options.overwrite == .different || options.overwrite == .newer else {
            return nil
        }
        return UInt32(exactly: file.source.identity.modificationSeconds)
    }
}
