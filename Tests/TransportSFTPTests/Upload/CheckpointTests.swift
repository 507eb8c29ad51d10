import Foundation
import Locking
import Logging
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct CheckpointTests {
    private static let size = 3_000_000

    /// Resumes an upload, and checks the position at which it resumes.
    ///
    /// - Parameter position: The expected position, or nil for the confirmed bytes of the checkpoint.
    private func resume(
        _ transfer: TestTransfer, _ source: UploadSource, from checkpoint: Checkpoint, at position: Int64? = nil
    ) async throws {
        let before = transfer.recorder.sent.count
        _ = try await transfer.upload(source, from: checkpoint)
        let resumed = transfer.recorder.sent.dropFirst(before).first { $0 > 0 }
        if position == 0 {
            #expect(resumed ?? 0 < 100_000, "All bytes are sent again.")
        } else {
            #expect(resumed == position ?? checkpoint.confirmed, "Received bytes are not sent again.")
        }
        #expect(transfer.stored == content(Self.size) && transfer.fixture.names == ["a.bin"])
    }

    /// Runs an upload until the server has received at least a million bytes, and then interrupts the upload.
    ///
    /// - Parameter act: Interrupts the upload.
    /// - Returns: The number of bytes that the server received.
    private func interrupt(_ transfer: TestTransfer, _ source: UploadSource, by act: (Task<Void, any Error>) -> Void) async throws -> Int {
        let granted = Locked(0)
        let isInterrupted = Locked(false)
        let checkpoints = transfer.recorder.reporter
        let reporter = AttemptReporter(
            progress: { _, _ in }, checkpoint: { try await checkpoints.save($0) },
            allowance: { limit in
                granted.withLock { granted in
                    if granted >= 1_000_000, !isInterrupted.withLock({ $0 }) { return Allowance(bytes: 0, retryAfter: .milliseconds(1)) }
                    granted += limit
                    return Allowance(bytes: limit)
                }
            })
        let upload = Task { _ = try await transfer.upload(source, reporting: reporter) }
        while granted.withLock({ $0 }) < 1_000_000 || transfer.storedPartFile?.count != granted.withLock({ $0 }) { await Task.yield() }
        let count = granted.withLock { $0 }
        // When this request completes, all earlier requests have completed.
        _ = try await (transfer.fixture.transport as? SFTPTransport)?.check(
            transfer.fixture.endpoint, credentials: transfer.fixture.credentials)
        act(upload)
        isInterrupted.withLock { $0 = true }
        await #expect(throws: (any Error).self) { try await upload.value }
        return count
    }

    /// The stored position up to which the server has acknowledged bytes without syncing them.
    private func acknowledged(_ checkpoint: Checkpoint) throws -> Int64? {
        try (JSONSerialization.jsonObject(with: checkpoint.data) as? [String: Any])?["acknowledged"] as? Int64
    }

    /// - Returns: The number of bytes that the server received, and the last checkpoint.
    private func breakConnection(_ transfer: TestTransfer, _ source: UploadSource) async throws -> (count: Int, checkpoint: Checkpoint) {
        let count = try await interrupt(transfer, source) { _ in
            for server in transfer.fixture.connector.servers { server.kill() }
        }
        for server in transfer.fixture.connector.servers { await server.close() }
        return (count, try #require(transfer.recorder.checkpoints.last))
    }

    @Test func lostConnectionKeepsConfirmedBytes() async throws {
        try await ProcessFixture.with(options: ["-P", "fsync"]) { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(Self.size))
            let (count, checkpoint) = try await breakConnection(transfer, source)
            #expect(checkpoint.confirmed >= count)
            try await resume(transfer, source, from: checkpoint)
        }
    }

    /// The server supports syncs, but the connection breaks before a sync is requested. The next attempt requests the sync.
    @Test func lostConnectionKeepsAcknowledgedBytes() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(Self.size))
            let (count, checkpoint) = try await breakConnection(transfer, source)
            // On a slow machine, the transport may already have saved a regular checkpoint.
            let position = try acknowledged(checkpoint) ?? checkpoint.confirmed
            #expect(position == Int64(count) && checkpoint.confirmed <= position)
            try await resume(transfer, source, from: checkpoint, at: Int64(count))
            // The first new checkpoint excludes these bytes, because the result of the sync may remain unknown. The second one confirms them.
            let checkpoints = transfer.recorder.checkpoints
            let first = try #require(checkpoints.firstIndex(of: checkpoint)) + 1
            #expect(checkpoints[first...].prefix(2).map(\.confirmed) == [checkpoint.confirmed, Int64(count)])
            #expect(try checkpoints[first...].prefix(2).allSatisfy { try acknowledged($0) == nil })
        }
    }

    /// The damage to acknowledged bytes by a power failure of the server.
    enum Loss: CaseIterable {
        case size
        case content
    }

    @Test(arguments: Loss.allCases) func sendsAcknowledgedBytesAgainIfServerLostThem(loss: Loss) async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(Self.size))
            let (count, checkpoint) = try await breakConnection(transfer, source)
            // On a slow machine, the transport may already have saved a regular checkpoint.
            guard checkpoint.confirmed < count else { return }
            var partFile = try #require(transfer.storedPartFile)
            switch loss {
            case .size: partFile = partFile.prefix(count - 1)
            case .content: partFile[partFile.startIndex + count - 1] ^= 1
            }
            try partFile.write(to: fixture.server.appending(path: ".tq-t-1.part"))
            try await resume(transfer, source, from: checkpoint, at: checkpoint.confirmed)
        }
    }

    /// A checkpoint from a damaged storage folder may contain arbitrary positions.
    @Test(arguments: [Int64.min, -1, 3_000_001, .max]) func rejectsImpossiblePositions(position: Int64) async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(Self.size))
            let part = Data(fixture.server.appending(path: "p").path.utf8).base64EncodedString()
            let stored = #"{"part":"PART","final":"Zg==","stage":"STAGE","acknowledged":ACKNOWLEDGED,"ranges":RANGES}"#
            let rangeText = #"[{"start":0,"end":END,"confirmed":CONFIRMED}]"#
            func checkpoint(_ stage: String, _ confirmed: Int64, _ acknowledged: Int64? = nil, _ ranges: String? = nil) -> Checkpoint {
                let text = stored.replacing("STAGE", with: stage).replacing("ACKNOWLEDGED", with: acknowledged.map { "\($0)" } ?? "null")
                let all = text.replacing("RANGES", with: ranges ?? "null").replacing("PART", with: part)
                return Checkpoint(data: Data(all.utf8), confirmed: confirmed)
            }
            func ranges(_ end: Int64, _ confirmed: Int64) -> String {
                rangeText.replacing("END", with: "\(end)").replacing("CONFIRMED", with: "\(confirmed)")
            }
            let size = Int64(Self.size)
            let checkpoints = [
                checkpoint("writing", position), checkpoint("placing", position), checkpoint("writing", 1, position),
                checkpoint("writing", 1, nil, ranges(position, 1)), checkpoint("writing", 1, nil, ranges(size, position)),
                checkpoint("writing", position, nil, ranges(size, 1)),
            ]
            try fixture.put(content(Self.size), "p")
            for checkpoint in checkpoints {
                let failure = await transfer.failure { try await transfer.upload(source, from: checkpoint) }
                #expect(failure?.failureClass == .resumeLost, "\(failure?.description ?? "")")
            }
        }
    }

    /// The server and the account. `mustNotSync` is a server that can sync, with an account that disables syncs.
    enum Server: CaseIterable {
        case syncs
        case cannotSync
        case mustNotSync
        case cannotBeRead

        var options: [String] {
            switch self {
            case .syncs, .mustNotSync: []
            case .cannotSync: ["-P", "fsync"]
            case .cannotBeRead: ["-P", "fsync,read"]
            }
        }
    }

    /// The part file has the expected size, but different content, as after a power failure without a sync.
    @Test(arguments: Server.allCases) func comparesUnsyncedBytes(server: Server) async throws {
        try await ProcessFixture.with(options: server.options) { fixture in
            var transfer = TestTransfer(fixture)
            if server == .mustNotSync { transfer.settings = ["sync": "false"] }
            let source = try transfer.source(content(Self.size))
            _ = try await interrupt(transfer, source) { $0.cancel() }
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            try #require(checkpoint.confirmed > 600_000)
            var partFile = try #require(transfer.storedPartFile)
            partFile[partFile.startIndex + 600_000] ^= 1
            try partFile.write(to: fixture.server.appending(path: ".tq-t-1.part"))
            if server == .cannotSync {
                let failure = await transfer.failure { try await transfer.upload(source, from: checkpoint) }
                #expect(failure?.failureClass == .resumeLost, "\(failure?.description ?? "")")
                _ = try await transfer.upload(source)
                #expect(transfer.stored == content(Self.size) && fixture.names == ["a.bin"])
            } else {
                // The transport does not compare this byte, because it was synced, syncs are disabled, or the file can't be read. So the byte is not
                // sent again.
                let receipt = try await transfer.upload(source, from: checkpoint)
                #expect(receipt.warnings.contains { $0.contains("was not compared") } == (server == .cannotBeRead), "\(receipt.warnings)")
                #expect(transfer.stored?[600_000] != content(Self.size)[600_000])
            }
        }
    }

    /// A cancelled attempt waits at most 80 ms for a sync. The server's files are in memory, where a sync takes no time, even while
    /// other tests write to the disk.
    @Test func cancellationKeepsSyncedBytes() async throws {
        let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
        let parent = FileManager.default.fileExists(atPath: memory.path) ? memory : FileManager.default.temporaryDirectory
        try await ProcessFixture.with(in: parent) { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(Self.size))
            let count = try await interrupt(transfer, source) { $0.cancel() }
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            #expect(checkpoint.confirmed >= count)
            try await resume(transfer, source, from: checkpoint)
        }
    }

    // MARK: Order of requests

    private enum Event: Equatable {
        case write
        case sync
        case rename
        case checkpoint(Int64, acknowledged: Int64? = nil)
    }

    /// - Parameters:
    ///   - reported: The size that the server reports.
    ///   - syncs: The results of the first syncs. Later syncs succeed.
    ///   - isCancelledAtSync: Whether the attempt is cancelled at the first sync. The server then responds to the first sync only when it receives a
    ///     second one.
    private func upload(
        _ size: Int, reported: Int, number: Int = 1, syncs: [Status.Code] = [], isCancelledAtSync: Bool = false,
        from checkpoint: Checkpoint? = nil
    ) async throws -> (events: [Event], error: TransferError?) {
        let path = FilePath(FileManager.default.temporaryDirectory.appending(path: "sftp-order-\(UUID().uuidString)").path)
        try content(size).write(to: URL(filePath: path.string))
        defer { try? FileManager.default.removeItem(atPath: path.string) }
        let string = { @Sendable (text: String) in ScriptedPeer.number(text.utf8.count) + Array(text.utf8) }
        let greeting = ScriptedPeer.packet(
            .version,
            ScriptedPeer.number(3) + ["fsync@openssh.com", "posix-rename@openssh.com"].flatMap { string($0) + string("1") })
        let events = Locked<[Event]>([])
        let syncs = Locked(syncs)
        let bytes = [UInt8](content(size))
        let withheld = Locked<[[UInt8]]>([])
        let (cancellations, cancellation) = AsyncStream.makeStream(of: Void.self)
        let peer = ScriptedPeer(greeting: greeting) { request in
            switch request.type {
            case .open: return [ScriptedPeer.handle(request.id)]
            case .lstat: return [ScriptedPeer.status(request.id, .noSuchFile)]
            case .fstat: return [ScriptedPeer.attributes(request.id, size: UInt64(reported))]
            case .read: return [ScriptedPeer.data(request.id, bytes.dropFirst(request.range.offset).prefix(request.range.count))]
            case .write: events.withLock { $0.append(.write) }
            case .rename: events.withLock { $0.append(.rename) }
            case .extended:
                let isSync = request.body.starts(with: string("fsync@openssh.com"))
                events.withLock { $0.append(isSync ? .sync : .rename) }
                let result = isSync ? syncs.withLock { $0.isEmpty ? nil : $0.removeFirst() } : nil
                let response = ScriptedPeer.status(request.id, result ?? .ok)
                if isCancelledAtSync, isSync, events.withLock({ $0.count { $0 == .sync } }) == 1 {
                    withheld.withLock { $0 = [response] }
                    cancellation.yield()
                    return []
                }
                return withheld.withLock { $0 } + [response]
            default: break
            }
            return [ScriptedPeer.status(request.id, .ok)]
        }
        let transport = SFTPTransport(connector: PeerConnector(peer: peer))
        let attempt = FileAttempt(
            transferID: "t-1", number: number, endpoint: .sftp("sftp://me@peer/"),
            source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)), remotePath: try RemotePath("reel.mov"),
            checkpoint: checkpoint, credentials: NoCredentials(), logger: Logger(label: "test"))
        let reporter = AttemptReporter(
            progress: { _, _ in },
            checkpoint: { checkpoint in
                let acknowledged = try self.acknowledged(checkpoint)
                events.withLock { $0.append(.checkpoint(checkpoint.confirmed, acknowledged: acknowledged)) }
            })
        let upload = Task { _ = try await transport.perform(attempt, reporting: reporter) }
        let cancelling = Task { for await _ in cancellations { upload.cancel() } }
        var failure: TransferError?
        do {
            try await upload.value
        } catch let error as TransferError {
            failure = error
        } catch is CancellationError where isCancelledAtSync {}
        cancelling.cancel()
        await transport.shutdown()
        return (events.withLock { $0 }, failure)
    }

    @Test func syncsBeforeCheckpointAndRename() async throws {
        let (events, error) = try await upload(30_000, reported: 30_000)
        #expect(error == nil && events.first == .checkpoint(0) && events.last == .rename)
        // Each event occurs at least once. A slow upload has additional syncs.
        let order = [Event.write, .sync, .checkpoint(30_000), .rename].compactMap { events.firstIndex(of: $0) }
        #expect(order.count == 4 && order == order.sorted(), "\(events)")
        #expect(events.count { $0 == .write } == 1 && events.count { $0 == .rename } == 1)
    }

    /// The server's operating system reports a failed write-back only once, and drops the bytes. A later sync would succeed, even in another
    /// attempt.
    @Test func laterSyncDoesNotConfirmLostBytes() async throws {
        let (events, error) = try await upload(30_000, reported: 30_000, syncs: [.failure])
        #expect(error != nil && !events.contains(.rename), "\(error?.description ?? "")")
        #expect(events.allSatisfy { if case .checkpoint(let confirmed, nil) = $0 { confirmed == 0 } else { $0 == .write || $0 == .sync } })
        #expect(events.count { $0 == .sync } == 1, "\(events)")
    }

    /// A sync that is due during the upload succeeds, and the next one fails. No further sync may confirm the lost bytes.
    @Test func remembersFailureOfEarlierSync() async throws {
        let size = 24 << 20
        let (events, error) = try await upload(size, reported: size, number: 2, syncs: [.ok, .failure])
        #expect(error != nil && !events.contains(.rename), "\(error?.description ?? "")")
        let failure = try #require(events.indices.filter { events[$0] == .sync }.dropFirst().first)
        let confirmed = events.map { if case .checkpoint(let confirmed, _) = $0 { confirmed } else { 0 } as Int64 }
        #expect((confirmed[failure...].max() ?? 0) <= (confirmed[..<failure].max() ?? 0))
        #expect(events.count { $0 == .sync } == 2)
    }

    /// After a failed attempt, the upload saves a checkpoint after 8 MiB, because the connection may soon break again.
    @Test func savesSoonerAfterFailedAttempt() async throws {
        let size = 24 << 20
        let (events, error) = try await upload(size, reported: size, number: 2)
        #expect(error == nil && events.last == .rename, "\(error?.description ?? "")")
        let saved = events.compactMap { if case .checkpoint(let confirmed, _) = $0 { confirmed } else { nil } }
        let first = try #require(saved.first { $0 > 0 })
        #expect(first < size, "\(saved)")
        #expect(saved == saved.sorted())
    }

    /// An earlier attempt left unsynced bytes. If their sync fails, the bytes may be lost, even if a later sync succeeds.
    @Test func forgetsAcknowledgedBytesAfterFailedSync() async throws {
        var stored = UploadCheckpoint(part: Array("p".utf8), final: Array("reel.mov".utf8), stage: .writing)
        stored.acknowledged = 20_000
        let checkpoint = Checkpoint(data: try JSONEncoder().encode(stored), confirmed: 10_000)
        let (events, error) = try await upload(30_000, reported: 30_000, syncs: [.failure, .failure], from: checkpoint)
        #expect(error != nil && events.starts(with: [.checkpoint(10_000), .sync]), "\(events)")
        #expect(
            events.allSatisfy { if case .checkpoint(let confirmed, let more) = $0 { confirmed == 10_000 && more == nil } else { true } })
    }

    /// The sync of a cancelled attempt fails, but no task waits for this response. A second sync would succeed.
    @Test func unknownSyncResultConfirmsNothing() async throws {
        let (events, _) = try await upload(24 << 20, reported: 24 << 20, number: 2, syncs: [.failure], isCancelledAtSync: true)
        #expect(events.allSatisfy { if case .checkpoint(let confirmed, let more) = $0 { confirmed == 0 && more == nil } else { true } })
        #expect(events.count { $0 == .sync } == 1, "\(events)")
    }

    /// Like ``unknownSyncResultConfirmsNothing()``, but the attempt resumes an upload, and syncs the acknowledged bytes of an earlier
    /// attempt.
    @Test func unknownSyncResultForgetsAcknowledgedBytes() async throws {
        var stored = UploadCheckpoint(part: Array("p".utf8), final: Array("reel.mov".utf8), stage: .writing)
        stored.acknowledged = 20_000
        let checkpoint = Checkpoint(data: try JSONEncoder().encode(stored), confirmed: 10_000)
        let (events, _) = try await upload(30_000, reported: 30_000, syncs: [.failure], isCancelledAtSync: true, from: checkpoint)
        let checkpoints = events.compactMap { if case .checkpoint(let confirmed, let more) = $0 { (confirmed, more) } else { nil } }
        #expect(checkpoints.last.map { $0.0 == 10_000 && $0.1 == nil } == true, "\(events)")
    }

    @Test(arguments: [29_999, 30_001]) func rejectsWrongFinalSize(reported: Int) async throws {
        let (events, error) = try await upload(30_000, reported: reported)
        #expect(error?.failureClass == .resumeLost && !events.contains(.rename), "\(error?.description ?? "")")
    }
}
