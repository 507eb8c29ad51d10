import SystemPackage
package import TransferCore
package import TransportSupport

/// One attempt to receive one file by `GET`, from where an earlier attempt got to if the server still has the same version of it (RFC 9110,
/// sections 13.1.5 and 14).
///
/// A part is continued only where the server names the version, by a strong validator; without one, each attempt begins at the first byte.
///
/// Where a session asks for several parts of a file at once, the first request asks for a beginning of it. If the server answers with just that,
/// names the version, and tells that the file is large, other requests bring the rest in pieces meanwhile; otherwise the answer to the first one
/// is all that is needed. A file that turned out to change between two requests, as one that is still being written, comes by one until it was
/// received. A checkpoint tells which pieces there are; its position is that up to which nothing is missing.
package struct HTTPDownload<Server: DownloadServer>: Sendable {
    let server: Server
    let threads: WorkerThreads
    let reporter: AttemptReporter
    let check: DigestCheck
    private let destination: DownloadDestination
    private let isNamedByServer: Bool
    private let checkpoint: Checkpoint?
    private let parallel: Int

    /// - Throws: A ``TransferError`` if the attempt is no download.
    package init(
        _ attempt: FileAttempt, from server: Server, on threads: WorkerThreads, reporting reporter: AttemptReporter
    ) throws(TransferError) {
        self.server = server
        self.threads = threads
        self.reporter = reporter
        destination = try attempt.destination
        // Where the app gave a name that is not the remote one's, that is the name.
        isNamedByServer =
            server.namesFiles
            && destination.name.lastComponent.map { FilePath(root: nil, components: $0).bytes } == attempt.remotePath.lastComponent
        guard !isNamedByServer || [.never, .rename].contains(destination.overwrite) else {
            throw TransferError(
                .unsupported, .unsupported,
                "With the setting contentDisposition nothing can be replaced, as nobody knows what a file will be called; ask for the overwrite policy "
                    + "never or rename.")
        }
        checkpoint = attempt.checkpoint
        parallel = attempt.options.parallel
        check = try DigestCheck(attempt.options)
    }

    /// - Throws: A ``TransferError``, after a checkpoint was saved for what arrived; or `CancellationError`.
    package func run() async throws -> TransferReceipt {
        var known: RemoteFile?
        var writer: FileWriter?
        var received = ByteRanges()
        let parallel = server.isChanging ? 1 : parallel
        var plan = PiecePlan(parallel: parallel, threshold: server.parallelThreshold)
        // Of an empty file that was about to be given its name, nothing is confirmed.
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
                    .resumeLost, .uploadGone, "What was received of \(server.name) can't be continued; it has to begin anew."
                )
            }
            reporter.report(sent: received.count, confirmed: received.prefix)
            writer = opened
        }
        if let length = known?.length, parallel > 1 || received.ranges.count > 1 {
            plan.add(received.gaps(upTo: length), of: length)
        } else {
            plan.add(received.prefix > 0 ? Piece(start: received.prefix) : server.ignoresRanges ? .whole : plan.first)
        }
        let part = DownloadPart(
            destination, isNamedByServer: isNamedByServer, continuing: writer, of: known, having: received, plan: plan, on: threads,
            reporter: reporter)
        do {
            try await fetch(into: part)
            let receipt = try await complete(part)
            server.noteCompletion()
            return receipt
        } catch let inPlace as DownloadPart.IsInPlace {
            return try await finish(inPlace.writer, nil, size: inPlace.writer.start)
        } catch let upToDate as DownloadPart.IsUpToDate {
            let size = upToDate.remote.length ?? 0
            reporter.report(sent: size, confirmed: size)
            return receipt(for: size, at: destination.named(by: upToDate.remote).path)
        } catch {
            // A cancelled request ends at once, also while the disk is slow to take what it brought.
            await part.seal()
            // What came is worth keeping, also when the attempt was cancelled.
            await Task { try? await keep(part) }.value
            throw error
        }
    }

    /// Makes what was received durable if that is due, and a checkpoint that vouches for it.
    func keepIfDue(_ part: DownloadPart) async throws {
        guard part.remote?.validator != nil, let writer = part.writer, let extent = part.extent,
            try await writer.syncIfDue(upTo: extent.mark)
        else { return }
        try await save(extent, of: part)
    }

    private func keep(_ part: DownloadPart) async throws {
        guard part.remote?.validator != nil, let writer = part.writer, let extent = part.extent else { return }
        try await writer.sync(upTo: extent.mark)
        try await save(extent, of: part)
    }

    /// - Parameter extent: Was taken before the file was synced.
    private func save(_ extent: DownloadPart.Extent, of part: DownloadPart) async throws {
        guard let remote = part.remote, extent.received.prefix > 0 else { return }
        try await reporter.save(try remote.checkpoint(of: extent.received))
        part.confirm(extent.received.prefix)
    }

    private func complete(_ part: DownloadPart) async throws -> TransferReceipt {
        let writer = try await threads.run { try part.open() }
        let (remote, size) = (part.remote, part.received.prefix)
        if let length = remote?.length, length != size {
            throw TransferError(.transient, .connectionLost, "Of \(server.name), \(size) of \(length) bytes have come.")
        }
        return try await finish(writer, remote ?? part.known, size: size)
    }

    private func finish(_ writer: FileWriter, _ remote: RemoteFile?, size: Int64) async throws -> TransferReceipt {
        var checksum: String?
        if !writer.isInPlace, let digest = try check.digest(of: remote, of: server.name) {
            guard try await digest.isThat(of: writer, size: size, on: threads, progress: reporter.reportActivity) else {
                throw check.mismatch(of: server.name)
            }
            checksum = digest.text
        }
        reporter.report(total: size)
        try await keepName(of: remote, writer, size: size)
        try await writer.finish(size: size, modificationTime: remote?.modificationTime)
        reporter.report(sent: size, confirmed: size)
        var receipt = receipt(for: size, at: writer.finalPath)
        receipt.checksum = checksum
        return receipt
    }

    /// Stores what the file is about to be called: the server may give another name to an attempt that comes after a kill, and the file would be there
    /// under both.
    private func keepName(of remote: RemoteFile?, _ writer: FileWriter, size: Int64) async throws {
        guard var remote, remote.name != nil, !writer.isInPlace else { return }
        remote.length = size
        try await writer.sync(upTo: size)
        try await reporter.save(try remote.checkpoint(of: ByteRanges(upTo: size)))
    }

    private func receipt(for size: Int64, at path: FilePath) -> TransferReceipt {
        TransferReceipt(bytes: size, remoteURL: server.shownURL, localPath: path == destination.path ? nil : path)
    }
}
