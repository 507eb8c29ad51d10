import Foundation
import Locking
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(10)))
struct RangeTests {
    private static let size = 400_000

    private func splitTransfer(_ fixture: ProcessFixture, connections: Int = 4) -> TestTransfer {
        var transfer = TestTransfer(fixture)
        transfer.options.segmentsPerFile = 4
        transfer.settings = ["parallelThreshold": "\(Self.size)", "maxConnections": "\(connections)"]
        return transfer
    }

    /// Returns the confirmed positions of a checkpoint's ranges, or nil if the checkpoint has no ranges.
    private func positions(_ checkpoint: Checkpoint) throws -> [(start: Int64, confirmed: Int64)]? {
        let stored = try JSONSerialization.jsonObject(with: checkpoint.data) as? [String: Any]
        return (stored?["ranges"] as? [[String: Int64]])?.map { ($0["start"] ?? -1, $0["confirmed"] ?? -1) }
    }

    /// Uploads a large file. The first connection hangs after its first bytes, until the closure returns.
    private func uploadDespiteHangingConnection(
        _ transfer: TestTransfer, _ source: UploadSource, while act: @escaping @Sendable (Task<TransferReceipt, any Error>) async -> Void
    ) async throws -> TransferReceipt {
        let connector = transfer.fixture.connector
        let recorder = transfer.recorder.reporter
        let hangs = Locked(false)
        let reporter = AttemptReporter(
            progress: { sent, confirmed in
                hangs.withLock { hangs in
                    if sent > 0, !hangs { connector.servers.first?.suspend() }
                    hangs = hangs || sent > 0
                }
                recorder.report(sent: sent, confirmed: confirmed)
            }, checkpoint: { try await recorder.save($0) })
        let upload = Task {
            defer { transfer.recorder.finish() }
            return try await transfer.upload(source, reporting: reporter)
        }
        await act(upload)
        connector.servers.first?.resume()
        return try await upload.value
    }

    @Test func otherConnectionsTakeOverRangeOfHangingConnection() async throws {
        try await ProcessFixture.with { fixture in
            var transfer = splitTransfer(fixture)
            transfer.settings["parallelThreshold"] = "1"
            let receipt = try await uploadDespiteHangingConnection(transfer, transfer.source(Self.large)) {
                [recorder = transfer.recorder] _ in
                while fixture.connector.servers.count < 4, !recorder.isFinished { await Task.yield() }
                // Waits until all bytes are sent, except the bytes in flight on the first connection and the remainder of its range. The
                // remainder is too small to split.
                while recorder.sent.last ?? 0 < Self.large.count - 7_000_000, !recorder.isFinished { await Task.yield() }
            }
            #expect(receipt.bytes == Self.large.count && transfer.stored == Self.large)
            #expect(fixture.names == ["a.bin"] && fixture.connector.servers.count == 4)
            #expect(transfer.recorder.sent.max() == Int64(Self.large.count))
            #expect(zip(transfer.recorder.sent, transfer.recorder.sent.dropFirst()).allSatisfy { $0 <= $1 })
        }
    }

    @Test func savesProgressOfEachConnection() async throws {
        try await ProcessFixture.with { fixture in
            var transfer = splitTransfer(fixture, connections: 2)
            transfer.settings["parallelThreshold"] = "1"
            let source = try transfer.source(Self.large)
            let error = await #expect(throws: (any Error).self) {
                try await uploadDespiteHangingConnection(transfer, source) { [recorder = transfer.recorder] upload in
                    while recorder.checkpoints.last?.confirmed ?? 0 == 0, !recorder.isFinished { await Task.yield() }
                    upload.cancel()
                }
            }
            #expect(error is CancellationError)
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            let saved = try #require(try positions(checkpoint))
            #expect(saved.count > 1 && saved.reduce(0) { $0 + $1.confirmed - $1.start } == checkpoint.confirmed)
            let second = Recorder()
            _ = try await transfer.upload(source, from: checkpoint, reporting: second.reporter)
            #expect(second.sent.first == checkpoint.confirmed)
            #expect(transfer.stored == Self.large && fixture.names == ["a.bin"])
        }
    }

    @Test func doesNotSplitFilesForOneConnection() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = splitTransfer(fixture, connections: 1)
            _ = try await transfer.upload(transfer.source(content(Self.size)))
            #expect(transfer.stored == content(Self.size) && fixture.connector.servers.count == 1)
            let first = try #require(transfer.recorder.checkpoints.first)
            #expect(try positions(first) == nil)
        }
    }

    @Test func doesNotSplitSmallFiles() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = splitTransfer(fixture)
            _ = try await transfer.upload(transfer.source(content(Self.size - 1)))
            #expect(transfer.stored == content(Self.size - 1) && fixture.connector.servers.count == 1)
        }
    }

    @Test func resumesAfterLostConnection() async throws {
        try await ProcessFixture.with { fixture in
            var transfer = splitTransfer(fixture, connections: 2)
            transfer.settings["parallelThreshold"] = "1"
            let source = try transfer.source(Self.large)
            try await fixture.cut(afterBytes: 8_000_000)
            let failure = await transfer.failure { try await transfer.upload(source) }
            #expect(failure?.failureClass == .transient, "\(String(describing: failure))")
            #expect(transfer.stored == nil)
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            let positions = try positions(checkpoint)
            let sum = try #require(positions).reduce(0) { $0 + $1.confirmed - $1.start }
            #expect(sum == checkpoint.confirmed)
            _ = try await transfer.upload(source, from: checkpoint)
            #expect(transfer.stored == Self.large && fixture.names == ["a.bin"])
        }
    }

    /// Creates a checkpoint with ranges of 100,000 bytes, and a part file whose bytes differ from the source. The stored content then shows
    /// which bytes a resumed upload sends.
    ///
    /// - Parameter confirmed: The number of confirmed bytes in each range.
    private func beginUpload(
        _ transfer: TestTransfer, _ source: UploadSource, confirmed: [Int64], partFileSize: Int
    ) async throws -> Checkpoint {
        _ = try await transfer.upload(source)
        try FileManager.default.removeItem(at: transfer.fixture.server.appending(path: "a.bin"))
        let first = try #require(transfer.recorder.checkpoints.first)
        var stored = try #require(try JSONSerialization.jsonObject(with: first.data) as? [String: Any])
        stored["ranges"] = confirmed.enumerated().map { number, bytes in
            let start = Int64(number) * 100_000
            return ["start": start, "end": start + 100_000, "confirmed": start + bytes]
        }
        try Data(repeating: 0x55, count: partFileSize).write(to: transfer.fixture.server.appending(path: ".tq-t-1.part"))
        return Checkpoint(data: try JSONSerialization.data(withJSONObject: stored), confirmed: confirmed.reduce(0, +))
    }

    @Test(arguments: [1, 2, 4]) func eachRangeResumesAtItsPosition(connections: Int) async throws {
        try await ProcessFixture.with { fixture in
            var transfer = splitTransfer(fixture)
            let source = try transfer.source(content(Self.size))
            let confirmed: [Int64] = [40_000, 0, 100_000, 1]
            let checkpoint = try await beginUpload(transfer, source, confirmed: confirmed, partFileSize: 350_000)
            let before = transfer.recorder.sent.count
            transfer.settings["maxConnections"] = "\(connections)"
            _ = try await transfer.upload(source, from: checkpoint)
            #expect(transfer.recorder.sent.dropFirst(before).first == 140_001)
            var expected = content(Self.size)
            for (number, bytes) in confirmed.enumerated() {
                let start = number * 100_000
                expected.replaceSubrange(start..<start + Int(bytes), with: Data(repeating: 0x55, count: Int(bytes)))
            }
            #expect(transfer.stored == expected, "Only bytes that the checkpoint does not cover are sent again.")
        }
    }

    @Test func rejectsShortPartFile() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = splitTransfer(fixture)
            let source = try transfer.source(content(Self.size))
            let checkpoint = try await beginUpload(transfer, source, confirmed: [100_000, 0, 50_000, 0], partFileSize: 240_000)
            #expect(await transfer.failure { try await transfer.upload(source, from: checkpoint) }?.failureClass == .resumeLost)
        }
    }

    @Test(arguments: [[100_000, 100_001, 0, 0], [0, -1, 0, 0], [50_000, 0, 0]])
    func rejectsInvalidRanges(confirmed: [Int64]) async throws {
        try await ProcessFixture.with { fixture in
            let transfer = splitTransfer(fixture)
            let source = try transfer.source(content(Self.size))
            let checkpoint = try await beginUpload(transfer, source, confirmed: confirmed, partFileSize: Self.size)
            #expect(await transfer.failure { try await transfer.upload(source, from: checkpoint) }?.failureClass == .resumeLost)
        }
    }

    @Test func verifiesWholeFile() async throws {
        try await ProcessFixture.with(commands: TestShell()) { fixture in
            var transfer = splitTransfer(fixture)
            transfer.options.verification = .checksum
            let receipt = try await transfer.upload(transfer.source(content(Self.size)))
            #expect(receipt.checksum?.hasPrefix("sha256:") == true && receipt.warnings.isEmpty)
            #expect(transfer.stored == content(Self.size))
        }
    }

    // MARK: Downloads

    /// Content of several blocks, each of which is different.
    private static let large: Data = {
        let filler = content(60_000)
        return (0..<200).reduce(into: Data()) { $0 += Data("\($1)".utf8) + filler }
    }()

    /// Opens two connections, and returns a download that uses both. Without the second open connection, the first one might receive the
    /// whole file.
    private func parallelDownload(_ fixture: ProcessFixture) async throws -> TestTransfer {
        var transfer = splitTransfer(fixture, connections: 2)
        transfer.settings["parallelThreshold"] = "1"
        transfer.name = "b.bin"
        _ = try await transfer.upload(transfer.source(content(1000)))
        try #require(fixture.connector.servers.count == 2)
        try fixture.put(Self.large, "a.bin")
        var download = TestTransfer(fixture)
        (download.options, download.settings) = (transfer.options, transfer.settings)
        return download
    }

    @Test func connectionsShareBlocksOfDownload() async throws {
        try await ProcessFixture.with(cutting: .fromServer) { fixture in
            let transfer = try await parallelDownload(fixture)
            #expect(try await transfer.download().bytes == Self.large.count)
            #expect(transfer.received == Self.large)
            #expect(fixture.connector.servers.count == 2)
            #expect(transfer.recorder.sent.max() == Int64(Self.large.count))
        }
    }

    @Test func resumesDownloadAfterLostConnection() async throws {
        try await ProcessFixture.with(cutting: .fromServer) { fixture in
            let transfer = try await parallelDownload(fixture)
            try await fixture.cut(afterBytes: 6_000_000)
            #expect(await transfer.failure { try await transfer.download() }?.failureClass == .transient)
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            #expect(checkpoint.confirmed > 0)
            let before = transfer.recorder.sent.count
            _ = try await transfer.download(from: checkpoint)
            #expect(transfer.recorder.sent.dropFirst(before).first == checkpoint.confirmed)
            #expect(transfer.received == Self.large)
        }
    }
}
