import TransferCore
import TransportSupport

/// One attempt to send one file: into a part beside its name, which gets that name when it is complete.
struct SFTPUpload {
    let connection: PooledConnection
    let features: ServerFeatures
    let place: RemotePlace
    let part: [UInt8]
    let file: FileReader
    let options: AttemptOptions
    /// Where an earlier attempt got to; nil for the first.
    let known: (checkpoint: UploadCheckpoint, confirmed: Int64)?
    let threads: WorkerThreads
    let reporter: AttemptReporter

    init(
        _ attempt: FileAttempt, to place: RemotePlace, over connection: PooledConnection, _ features: ServerFeatures, from file: FileReader,
        on threads: WorkerThreads, reporting reporter: AttemptReporter
    ) throws(TransferError) {
        self.connection = connection
        self.features = features
        self.place = place
        self.file = file
        self.threads = threads
        self.reporter = reporter
        options = attempt.options
        part = try place.part(of: attempt.transferID)
        known = attempt.checkpoint.flatMap { stored in UploadCheckpoint(stored).map { ($0, stored.confirmed) } }
    }

    private var client: SFTPClient { connection.client }

    /// Below this, the space at the server is not asked for: the content itself is sooner refused.
    private static let spaceThreshold: Int64 = 1 << 20

    /// - Throws: A `TransferError`, or `CancellationError`.
    func run() async throws -> TransferReceipt {
        do {
            return try await transfer()
        } catch let failure as StatusFailure {
            throw failure.status.transferError(place.name, .upload, at: client.serverName)
        }
    }

    private func transfer() async throws -> TransferReceipt {
        let placing = PartPlacing(
            client: client, features: features, place: place, part: part, policy: options.overwrite, source: file.source)
        if let known, known.checkpoint.stage == .placing {
            let size = known.confirmed
            if var receipt = try await placing.settle(known.checkpoint, size: size) {
                reporter.report(sent: size, confirmed: size)
                receipt.checksum = known.checkpoint.checksum
                return receipt
            }
            return try await give(placing, name: size, checksum: known.checkpoint.checksum)
        }
        if known == nil, let receipt = try await placing.receiptIfLeft() {
            reporter.report(sent: receipt.bytes, confirmed: receipt.bytes)
            return receipt
        }
        let checkpoint = UploadCheckpoint(part: part, final: place.final, stage: .writing)
        // Written before there is a part, so that whoever finds it after a crash can remove that.
        if known == nil { try await reporter.save(checkpoint.encoded(confirmed: 0)) }
        let start = known?.confirmed ?? 0
        let handle = try await openPart(from: start)
        let writer = PartWriter(
            handle, at: client, features, from: start, of: file, checkpoint: checkpoint, on: threads, reporting: reporter)
        do {
            var (size, warnings) = try await write(writer, from: start)
            let checksum = try await verify(size, &warnings)
            var receipt = try await give(placing, name: size, checksum: checksum)
            receipt.warnings += warnings
            return receipt
        } catch {
            await writer.keepBeforeEnd()
            writer.close()
            throw error
        }
    }

    // MARK: The part

    /// Opens the part that a checkpoint vouches for, or makes a new one.
    private func openPart(from confirmed: Int64) async throws -> Handle {
        guard confirmed == 0 else { return try await reopenPart(from: confirmed) }
        do {
            return try await makePart()
        } catch let failure as StatusFailure where failure.status.code.meansMissing && !place.parents.isEmpty {
            // Whether they could be made is seen by the part.
            let answers = place.parents.map { client.begin(.mkdir($0)) }
            for answer in answers { _ = try await answer.answer() }
            return try await makePart()
        }
    }

    private func makePart() async throws -> Handle {
        // Whatever has its name is of an earlier attempt, or was put there for us to write through.
        let removal = client.begin(.remove(part))
        let opening = client.begin(.open(part, [.write, .create, .exclusive]))
        _ = try await removal.answer()
        return try await opening.handle()
    }

    private func reopenPart(from confirmed: Int64) async throws -> Handle {
        let handle: Handle
        do {
            handle = try await client.open(.open(part, [.write]))
        } catch let failure as StatusFailure where failure.status.code.meansMissing {
            throw PartPlacing.lost(place.name, at: client.serverName)
        }
        do {
            guard let size = try await client.attributes(.fstat(handle)).size, size >= UInt64(confirmed) else {
                throw PartPlacing.lost(place.name, at: client.serverName)
            }
            // What is behind was never vouched for.
            if size > UInt64(confirmed) { try await client.perform(.fsetstat(handle, .size(confirmed))) }
        } catch {
            client.close(handle)
            throw error
        }
        return handle
    }

    // MARK: Content

    private func write(_ writer: PartWriter, from start: Int64) async throws -> (size: Int64, warnings: [String]) {
        if file.source.growth == nil { try await requireSpace(at: writer.handle, for: file.source.size - start) }
        let size: Int64
        let end: (size: Int64?, tookTimes: Bool)
        do {
            size = try await writer.write()
            end = try await writer.finish(times: times)
            try await file.verifyUnchanged()
        } catch let error as TransferError where error.failureClass == .sourceChanged {
            // What arrived is a part of one version, or a mix of two.
            writer.close()
            try? await client.perform(.remove(part))
            throw error
        } catch let failure as StatusFailure where failure.status.code == .failure {
            throw try await explain(failure, at: writer.handle)
        }
        guard end.size == nil || end.size == size || options.verification == .none else {
            throw TransferError(
                .resumeLost, .badAnswer,
                "\(place.name) has \(end.size ?? 0) bytes at \(client.serverName), but \(size) were sent; it begins anew.")
        }
        let warnings = end.tookTimes ? [] : ["\(client.serverName) did not let \(place.name) have the time of its last change."]
        return (size, warnings)
    }

    /// The modification time that the file at the server gets, where a later session compares it.
    private var times: UInt32? {
        guard file.source.growth == nil, options.overwrite == .different || options.overwrite == .newer else { return nil }
        return UInt32(exactly: file.source.identity.modificationTime / 1_000_000_000)
    }

    private func requireSpace(at handle: Handle, for bytes: Int64) async throws {
        guard bytes >= Self.spaceThreshold, let space = try await client.space(at: handle), space.available < UInt64(bytes) else { return }
        try? await client.perform(.remove(part))
        throw TransferError(
            .remoteFull, .remoteFull,
            "\(client.serverName) has \(space.available) bytes free where \(place.name) goes, which needs \(bytes) more.")
    }

    /// A failure without a reason may be a full disk (OpenSSH has no status for it).
    private func explain(_ failure: StatusFailure, at handle: Handle) async throws -> TransferError {
        var status = failure.status
        if let space = try await client.space(at: handle), space.available < UInt64(features.writeSize) { status.code = .noSpace }
        return status.transferError(place.name, .upload, at: client.serverName)
    }

    /// - Returns: The checksum that the part has at the server, if checksums are to be compared.
    private func verify(_ size: Int64, _ warnings: inout [String]) async throws -> String? {
        guard options.verification == .checksum else { return nil }
        let comparison = ContentComparison(connection: connection, features: features, threads: threads, reporter: reporter)
        let outcome = try await comparison.compare(part, place.name, with: LocalContent(file, size: size))
        warnings += outcome.warnings
        if let digest = outcome.digest { return digest.text }
        try? await client.perform(.remove(part))
        // Of a file that changed meanwhile, it says nothing.
        try await file.verifyUnchanged()
        throw TransferError(
            .resumeLost, .checksumMismatch,
            "What \(client.serverName) has of \(place.name) is not what was sent; it was removed there, and begins anew.")
    }

    // MARK: The name

    private func give(_ placing: PartPlacing, name size: Int64, checksum: String?) async throws -> TransferReceipt {
        var receipt = try await placing.place(size: size) { final in
            let checkpoint = UploadCheckpoint(part: part, final: final, stage: .placing, checksum: checksum)
            try await reporter.save(checkpoint.encoded(confirmed: size))
        }
        receipt.checksum = checksum
        reporter.report(sent: size, confirmed: size)
        return receipt
    }
}
