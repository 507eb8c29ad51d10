import Locking
import TransferCore
import TransportSupport

/// One attempt to download one file.
struct SFTPDownload {
    let connection: PooledConnection
    let features: SFTPFeatures
    let lender: ConnectionLender
    let paths: RemoteFilePaths
    let destination: DownloadDestination
    let checkpoint: Checkpoint?
    let options: AttemptOptions
    let expected: Checksum?
    let server: SFTPServer
    let threads: WorkerThreads
    let reporter: AttemptReporter

    init(
        _ attempt: FileAttempt, _ server: SFTPServer, over connection: PooledConnection, _ features: SFTPFeatures,
        lender: ConnectionLender, on threads: WorkerThreads, reporting reporter: AttemptReporter
    ) throws(TransferError) {
        self.connection = connection
        self.features = features
        paths = RemoteFilePaths(attempt.remotePath, at: server.address)
        self.server = server
        self.lender = lender
        self.threads = threads
        self.reporter = reporter
        destination = try attempt.destination
        checkpoint = attempt.checkpoint
        options = attempt.options
        expected = try Checksum(expectedBy: options)
    }

    private var client: SFTPClient { connection.client }

    /// Downloads the file. If an error that permits resuming occurs while content arrives, first saves a checkpoint for the bytes before the
    /// first gap.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    func run() async throws -> TransferReceipt {
        do {
            return try await transfer()
        } catch let failure as StatusFailure where failure.status.isUnexplained {
            throw try await reason(for: failure)
        } catch let failure as StatusFailure {
            throw failure.transferError(paths.name, .download, at: client.serverName)
        } catch is ContentReader.EndedEarly {
            throw changedFileError
        }
    }

    private func transfer() async throws -> TransferReceipt {
        var resumed: FileWriter?
        var knownVersion: RemoteVersion?
        if let checkpoint, checkpoint.confirmed > 0 {
            knownVersion = RemoteVersion(checkpoint)
            let opened = try await FileWriter.open(destination, from: checkpoint.confirmed, size: knownVersion?.size, on: threads)
            if opened.isInPlace { return try await finish(opened, nil, mode: keptMode(), size: opened.start) }
            guard knownVersion != nil else { throw changedFileError }
            resumed = opened
        }
        // Opening a FIFO would block the server, so check the kind of file first.
        let (version, mode) = try await requestVersion()
        if let knownVersion, knownVersion != version { throw changedFileError }
        reporter.report(total: version.size)
        if resumed == nil, try await isUpToDate(version) {
            reporter.report(sent: version.size, confirmed: version.size)
            return TransferReceipt(bytes: version.size, remoteURL: paths.url(of: paths.final))
        }
        let handle = try await client.open(.open(paths.final, [.read]))
        defer { client.close(handle) }
        let writer: FileWriter
        if let resumed {
            writer = resumed
        } else {
            writer = try await FileWriter.open(destination, size: version.size, on: threads)
            if writer.isInPlace { return try await finish(writer, nil, mode: mode, size: writer.start) }
        }
        try await receive(version, from: handle, into: writer)
        return try await finish(writer, version, mode: mode, size: version.size)
    }

    private func isUpToDate(_ version: RemoteVersion) async throws -> Bool {
        try await FileWriter.isUpToDate(
            destination, size: version.size, modificationTime: version.modificationNanoseconds, on: threads)
    }

    private func requestVersion() async throws -> (version: RemoteVersion, mode: UInt32?) {
        let found = try await client.attributes(.stat(paths.final))
        switch found.kind {
        case nil, .regular?: break
        case .folder?:
            throw TransferError(.permanent, .isFolder, "\(paths.name) is a folder at \(client.serverName), not a file.")
        default:
            throw TransferError(.permanent, .rejected, "\(paths.name) is not a regular file at \(client.serverName).")
        }
        guard try found.checkedSize(of: paths.name, at: client.serverName) != nil, let version = RemoteVersion(found) else {
            throw TransferError(.unsupported, .unsupported, "\(client.serverName) does not report the size of \(paths.name).")
        }
        return (version, found.permissions)
    }

    /// Returns nil if the endpoint's options do not keep permissions, or the server does not report them.
    private func keptMode() async throws -> UInt32? {
        guard server.options.keepModes else { return nil }
        do {
            return try await client.attributes(.stat(paths.final)).permissions
        } catch is StatusFailure {
            // The local file is already complete, so this failure must not fail the download.
            return nil
        }
    }

    // MARK: Content

    private func receive(_ version: RemoteVersion, from handle: Handle, into writer: FileWriter) async throws {
        let start = writer.start
        let progress = DownloadProgress(reporter, from: start)
        if start > 0 { progress.update(confirmed: start) }
        let prefix = Locked(ConfirmedPrefix(from: start))
        let total = Locked(start)
        let (positions, continuation) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    defer { continuation.finish() }
                    try await read(version, from: start, handle) { packets in
                        for packet in packets {
                            try unsafe packet.bytes.withUnsafeBytes { unsafe try writer.writeNow($0, at: packet.offset) }
                        }
                        let position = prefix.withLock { prefix in
                            for packet in packets { prefix.insert(packet.offset..<packet.offset + Int64(packet.bytes.count)) }
                            return prefix.end
                        }
                        progress.update(
                            sent: total.withLock { total in
                                total += packets.reduce(0) { $0 + Int64($1.bytes.count) }
                                return total
                            })
                        continuation.yield(position)
                    }
                }
                group.addTask {
                    for await position in positions where try await writer.syncIfDue(upTo: position) {
                        try await reporter.save(version.checkpoint(at: position))
                        progress.update(confirmed: position)
                    }
                }
                // waitForAll() would let the other task continue after an error.
                while try await group.next() != nil {}
            }
            // If the file changed during the download, the received bytes mix two versions and are useless.
            guard try await RemoteVersion(client.attributes(.fstat(handle))) == version else { throw changedFileError }
        } catch {
            guard (error as? TransferError)?.failureClass != .resumeLost else { throw error }
            // A separate task, because the attempt's task may be cancelled.
            await Task {
                let position = prefix.withLock { $0.end }
                guard position > progress.confirmed else { return }
                try? await writer.sync(upTo: position)
                guard writer.syncedPosition >= position else { return }
                try? await reporter.save(version.checkpoint(at: position))
                progress.update(confirmed: position)
            }.value
            throw error
        }
    }

    /// Uses additional connections if the file is large, and the options of the session and the endpoint allow them.
    private func read(
        _ version: RemoteVersion, from start: Int64, _ handle: Handle,
        process: @escaping @Sendable ([ContentReader.DataPacket]) throws -> Void
    ) async throws {
        let reader = ContentReader(handle, at: client, features, on: threads, reporting: reporter)
        let count = min(options.segmentsPerFile, server.options.maxConnections)
        guard count > 1, version.size >= server.options.parallelThreshold else {
            return try await reader.read(start..<version.size, process: process)
        }
        // Each reader requests the next free block, so gaps in the part file are few and short-lived.
        let blocks = ContentBlocks(start..<version.size, each: Self.blockSize)
        let arrived = Locked(start)
        let processAndCount = { @Sendable (packets: [ContentReader.DataPacket]) in
            try process(packets)
            arrived.withLock { $0 += packets.reduce(0) { $0 + Int64($1.bytes.count) } }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await reader.read(next: blocks.next, process: processAndCount) }
            for _ in 1..<count {
                group.addTask {
                    try await lender.lend { connection, features in
                        try await read(version, blocks, over: connection, features, process: processAndCount)
                    }
                }
            }
            while try await group.next() != nil {
                guard arrived.withLock({ $0 }) == version.size else { continue }
                // The other tasks only wait for a connection.
                group.cancelAll()
                return
            }
        }
    }

    private func read(
        _ version: RemoteVersion, _ blocks: ContentBlocks, over connection: PooledConnection, _ features: SFTPFeatures,
        process: @escaping @Sendable ([ContentReader.DataPacket]) throws -> Void
    ) async throws {
        let handle = try await connection.client.open(.open(paths.final, [.read]))
        defer { connection.client.close(handle) }
        guard try await RemoteVersion(connection.client.attributes(.fstat(handle))) == version else { throw changedFileError }
        let reader = ContentReader(handle, at: connection.client, features, on: threads, reporting: reporter)
        try await reader.read(next: blocks.next, process: process)
    }

    private static let blockSize: Int64 = 4 << 20

    private func finish(_ writer: FileWriter, _ version: RemoteVersion?, mode: UInt32? = nil, size: Int64) async throws -> TransferReceipt {
        var receipt = TransferReceipt(bytes: size, remoteURL: paths.url(of: paths.final))
        if version != nil { try await verify(LocalContent(writer, size: size), &receipt) }
        reporter.report(total: size)
        let kept = server.options.keepModes ? mode : nil
        // Set the permissions before the rename, because this process may be killed at any time. The owner's permissions to read and write are
        // needed until then, so remove them last.
        var isModeSet = true
        if let kept, !writer.isInPlace { isModeSet = writer.descriptor.changePartFile(mode: kept) }
        try await writer.finish(
            size: size, modificationTime: version?.modificationNanoseconds, staysPrivate: kept != nil, permissions: mode)
        if let kept, isModeSet { isModeSet = writer.descriptor.removeAddedPermissions(mode: kept) }
        if !isModeSet {
            receipt.warnings.append("The system refused to give \(writer.finalPath) the permissions of the file at \(client.serverName).")
        }
        reporter.report(sent: size, confirmed: size)
        if writer.finalPath != destination.path { receipt.localPath = writer.finalPath }
        return receipt
    }

    /// Compares the content with the expected checksum, or with the server's file if the session requires checksums.
    private func verify(_ content: LocalContent, _ receipt: inout TransferReceipt) async throws {
        let comparison = ContentComparison(connection: connection, features: features, threads: threads, reporter: reporter)
        if let expected {
            guard try await comparison.hasChecksum(expected, of: content) else {
                throw TransferError(
                    .resumeLost, .checksumMismatch,
                    "The download of \(paths.name) does not match the expected checksum, so it can't be used.")
            }
            receipt.checksum = expected.text
        } else if options.verification == .checksum {
            let outcome = try await comparison.compare(paths.final, paths.name, with: content)
            guard let digest = outcome.digest else {
                throw TransferError(
                    .resumeLost, .checksumMismatch,
                    "The download of \(paths.name) differs from the file at \(client.serverName). The download restarts.")
            }
            receipt.checksum = digest.text
            receipt.warnings += outcome.warnings
        }
    }

    private var changedFileError: TransferError {
        TransferError(
            .resumeLost, .uploadGone,
            "\(paths.name) changed at \(client.serverName) during the download. The download restarts.")
    }
}
