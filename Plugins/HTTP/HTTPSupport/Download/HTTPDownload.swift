import SystemPackage
package import TransferCore
package import TransportSupport

/// One attempt to download one file with `GET`.
///
/// The attempt resumes from the part file of an earlier attempt if the server identifies versions of the file by a strong validator, and
/// still has the same version (RFC 9110, sections 13.1.5 and 14). Otherwise, the download restarts from byte 0.
///
/// If the session allows several segments, the first request is for the beginning of the file, at most 16 MiB. The remaining ranges are
/// downloaded in parallel if the response starts at byte 0, identifies the version, reports a large total size, and has the file's checksum if
/// one is required. Otherwise, the download uses only one connection. If a file changes between two requests, for example because the server is
/// still writing the file, later attempts download it with one request.
///
/// A checkpoint stores the received ranges. The checkpoint's position is the end of the range that starts at byte 0.
package struct HTTPDownload: Sendable {
    let source: DownloadSource
    let threads: WorkerThreads
    let reporter: AttemptReporter
    let check: DigestCheck
    private let destination: DownloadDestination
    private let isNamedByServer: Bool
    private let checkpoint: Checkpoint?
    private let segmentsPerFile: Int

    /// - Throws: A ``TransferError`` if the attempt is not a download, or if its options are invalid or conflict.
    package init(
        _ attempt: FileAttempt, from source: DownloadSource, on threads: WorkerThreads, reporting reporter: AttemptReporter
    ) throws(TransferError) {
        self.source = source
        self.threads = threads
        self.reporter = reporter
        destination = try attempt.destination
        // A local name from the app that differs from the remote name takes precedence.
        isNamedByServer =
            source.options.contentDisposition
            && destination.name.lastComponent.map { FilePath(root: nil, components: $0).bytes } == attempt.remotePath.lastComponent
        guard !isNamedByServer || [.never, .rename].contains(destination.overwrite) else {
            throw TransferError(
                .unsupported, .unsupported,
                "The setting contentDisposition requires the overwrite policy never or rename, "
                    + "because the name of a file is not known before its download.")
        }
        checkpoint = attempt.checkpoint
        segmentsPerFile = attempt.options.segmentsPerFile
        check = try DigestCheck(attempt.options)
    }

    /// Downloads the file.
    ///
    /// - Throws: A ``TransferError`` or `CancellationError`. Before the error is thrown, the received bytes are saved in a checkpoint if a
    ///   later attempt can resume.
    package func run() async throws -> TransferReceipt {
        var known: RemoteFile?
        var writer: FileWriter?
        var received = ByteRanges()
        let connections = source.quirks.isChanging(source.file) ? 1 : segmentsPerFile
        var plan = RangePlan(parallel: connections, threshold: source.options.parallelThreshold)
        // The checkpoint of an empty file confirms no bytes, but may contain the file's name.
        if let checkpoint, (0...RemoteFile.maximumLength).contains(checkpoint.confirmed),
            checkpoint.confirmed > 0 || RemoteFile(checkpoint)?.name != nil
        {
            known = RemoteFile(checkpoint)
            received = known?.received(upTo: checkpoint.confirmed) ?? ByteRanges(upTo: checkpoint.confirmed)
            let opened = try await FileWriter.open(
                destination.named(by: known), from: received.end, size: known?.length, on: threads)
            if opened.isInPlace { return try await finish(opened, nil, size: opened.start) }
            if let known, known.length == received.prefix { return try await finish(opened, known, size: received.prefix) }
            guard known?.validator != nil else {
                throw TransferError(
                    .resumeLost, .uploadGone, "The download of \(source.name) can't be resumed. It must restart."
                )
            }
            reporter.report(sent: received.count, confirmed: received.prefix)
            writer = opened
        }
        if let length = known?.length, connections > 1 || received.ranges.count > 1 {
            plan.add(received.gaps(upTo: length), of: length)
        } else {
            plan.add(
                received.prefix > 0
                    ? FileRange(start: received.prefix) : source.quirks.ignoresRanges(source.file) ? .whole : plan.first)
        }
        let partFile = PartFile(
            destination, isNamedByServer: isNamedByServer, continuing: writer, of: known, having: received, plan: plan, on: threads,
            reporter: reporter)
        do {
            try await fetch(into: partFile)
            let receipt = try await complete(partFile)
            source.quirks.recordCompletion(source.file)
            return receipt
        } catch let inPlace as PartFile.IsInPlace {
            return try await finish(inPlace.writer, nil, size: inPlace.writer.start)
        } catch let upToDate as PartFile.IsUpToDate {
            let size = upToDate.remote.length ?? 0
            reporter.report(sent: size, confirmed: size)
            return receipt(for: size, at: destination.named(by: upToDate.remote).path)
        } catch {
            // A cancelled request ends immediately, even while the disk still writes the request's bytes. This call waits for the disk.
            await partFile.seal()
            // A separate task saves the received bytes even if this task was cancelled.
            await Task { try? await syncAndSave(partFile) }.value
            throw error
        }
    }

    /// Syncs the received bytes and saves a checkpoint for them, if a sync is due and a later attempt can resume.
    func syncAndSaveIfDue(_ partFile: PartFile) async throws {
        guard partFile.remote?.validator != nil, let writer = partFile.writer, let extent = partFile.extent,
            try await writer.syncIfDue(upTo: extent.syncPosition)
        else { return }
        try await save(extent, of: partFile)
    }

    /// Syncs the received bytes and saves a checkpoint for them, if a later attempt can resume.
    private func syncAndSave(_ partFile: PartFile) async throws {
        guard partFile.remote?.validator != nil, let writer = partFile.writer, let extent = partFile.extent else { return }
        try await writer.sync(upTo: extent.syncPosition)
        try await save(extent, of: partFile)
    }

    /// - Parameter extent: The bytes that were written before the sync.
    private func save(_ extent: PartFile.Extent, of partFile: PartFile) async throws {
        guard let remote = partFile.remote, extent.received.prefix > 0 else { return }
        try await reporter.save(try remote.checkpoint(of: extent.received))
        partFile.confirm(extent.received.prefix)
    }

    private func complete(_ partFile: PartFile) async throws -> TransferReceipt {
        let writer = try await threads.run { try partFile.open() }
        let (remote, size) = (partFile.remote, partFile.received.prefix)
        if let length = remote?.length, length != size {
            throw TransferError(.transient, .connectionLost, "Only \(size) of \(length) bytes of \(source.name) arrived.")
        }
        return try await finish(writer, remote ?? partFile.known, size: size)
    }

    /// Compares the checksum, and gives the part file its final name. If an earlier attempt has already renamed the part file, only returns the
    /// receipt.
    private func finish(_ writer: FileWriter, _ remote: RemoteFile?, size: Int64) async throws -> TransferReceipt {
        var checksum: String?
        if !writer.isInPlace, let digest = try check.digest(of: remote, of: source.name) {
            let found = try await threads.checksum(
                digest.algorithm, of: 0..<size, reading: { try writer.bytes($0) }, progress: reporter.reportActivity)
            guard found == digest else { throw check.mismatch(of: source.name) }
            checksum = digest.text
        }
        reporter.report(total: size)
        try await saveSuggestedName(of: remote, writer, size: size)
        try await writer.finish(size: size, modificationTime: remote?.modificationTime)
        reporter.report(sent: size, confirmed: size)
        var receipt = receipt(for: size, at: writer.finalPath)
        receipt.checksum = checksum
        return receipt
    }

    /// Saves a local name from the server in a checkpoint before the file gets that name. Otherwise, the server might suggest another name
    /// to the next attempt after a crash, and the file would exist under both names.
    private func saveSuggestedName(of remote: RemoteFile?, _ writer: FileWriter, size: Int64) async throws {
        guard var remote, remote.name != nil, !writer.isInPlace else { return }
        remote.length = size
        try await writer.sync(upTo: size)
        try await reporter.save(try remote.checkpoint(of: ByteRanges(upTo: size)))
    }

    private func receipt(for size: Int64, at path: FilePath) -> TransferReceipt {
        TransferReceipt(bytes: size, remoteURL: source.shownURL, localPath: path == destination.path ? nil : path)
    }
}
