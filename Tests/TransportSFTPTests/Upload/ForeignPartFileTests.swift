import Foundation
import Locking
import Testing
import TransferCore
import TransportSFTP

/// Uploads that resume the upload of another queue, which may still have its part file open.
@Suite(.timeLimit(.minutes(2))) struct ForeignPartFileTests {
    private static let size = 3_000_000

    /// Returns the transfer of the second queue (with its own part ID); the source; and the last checkpoint of the first queue. The first queue's
    /// upload is cancelled after an allowance for at least `bytes` bytes.
    private func interrupted(_ fixture: ProcessFixture, after bytes: Int) async throws -> (TestTransfer, UploadSource, Checkpoint) {
        let transfer = TestTransfer(fixture)
        let source = try transfer.source(content(Self.size))
        let (granted, recorder) = (Locked(0), transfer.recorder.reporter)
        let upload = Locked<Task<Void, any Error>?>(nil)
        let reporter = AttemptReporter(
            progress: { _, _ in }, checkpoint: { try await recorder.save($0) },
            allowance: { limit in
                granted.withLock { granted in
                    guard granted < bytes else {
                        upload.withLock { $0?.cancel() }
                        return Allowance(bytes: 0, retryAfter: .milliseconds(1))
                    }
                    granted += limit
                    return Allowance(bytes: limit)
                }
            })
        upload.withLock { $0 = Task { _ = try await transfer.upload(source, reporting: reporter) } }
        await #expect(throws: (any Error).self) { try await upload.withLock(\.self)?.value }
        var second = TestTransfer(fixture)
        second.partID = "t-1-2"
        return (second, source, try #require(transfer.recorder.checkpoints.last))
    }

    @Test func `the confirmed bytes are copied into a new part file`() async throws {
        try await ProcessFixture.with { fixture in
            let (transfer, source, checkpoint) = try await interrupted(fixture, after: 1_000_000)
            #expect(checkpoint.confirmed > 0 && fixture.names == [".tq-t-1.part"])
            // The other queue has its part file open, and may write to the file at any time.
            let other = try FileHandle(forUpdating: fixture.server.appending(path: ".tq-t-1.part"))
            let receipt = try await transfer.upload(source, from: checkpoint)
            try other.write(contentsOf: Data("stale".utf8))
            #expect(receipt.bytes == Self.size && transfer.stored == content(Self.size))
            #expect(transfer.recorder.sent.first { $0 > 0 } == checkpoint.confirmed)
            #expect(fixture.names == ["a.bin"])
        }
    }

    /// The other queue's last checkpoint confirms no bytes. It was saved before that queue created its part file, which now exists.
    @Test func `a part file without confirmed bytes is not used`() async throws {
        try await ProcessFixture.with { fixture in
            let (transfer, source, checkpoint) = try await interrupted(fixture, after: 0)
            #expect(checkpoint.confirmed == 0)
            _ = try await transfer.upload(source, from: checkpoint)
            #expect(transfer.stored == content(Self.size) && fixture.names == ["a.bin"])
        }
    }

    @Test func `the attempt fails with resumeLost if the server can't copy`() async throws {
        try await ProcessFixture.with(options: ["-P", "copy-data"]) { fixture in
            let (transfer, source, checkpoint) = try await interrupted(fixture, after: 1_000_000)
            let failure = await transfer.failure { try await transfer.upload(source, from: checkpoint) }
            #expect(failure?.failureClass == .resumeLost)
            #expect(fixture.names == [])
        }
    }

    /// Every interruption leaves a checkpoint from which another queue can resume the upload or remove the part files.
    @Test(arguments: [true, false]) func `resuming or removing an interrupted copy leaves no part file`(isRemoved: Bool) async throws {
        try await ProcessFixture.with { fixture in
            let (transfer, source, checkpoint) = try await interrupted(fixture, after: 1_000_000)
            for saves in 1...2 {
                let left = Locked(saves)
                let reporter = AttemptReporter(
                    progress: { _, _ in },
                    checkpoint: { checkpoint in
                        try await transfer.recorder.reporter.save(checkpoint)
                        let isLast = left.withLock { left in
                            left -= 1
                            return left == 0
                        }
                        if isLast { throw CancellationError() }
                    })
                await #expect(throws: CancellationError.self) {
                    try await transfer.upload(source, from: transfer.recorder.checkpoints.last ?? checkpoint, reporting: reporter)
                }
            }
            let last = try #require(transfer.recorder.checkpoints.last)
            if isRemoved {
                let transport = try #require(fixture.transport as? SFTPTransport)
                try await transport.discard(last, at: fixture.endpoint, credentials: fixture.credentials)
                #expect(fixture.names == [])
            } else {
                var third = TestTransfer(fixture)
                third.partID = "t-1-3"
                _ = try await third.upload(source, from: last)
                #expect(third.stored == content(Self.size) && fixture.names == ["a.bin"])
            }
        }
    }

    /// The other queue creates its part file again after this upload has removed it. Then this upload is killed just before or after its rename.
    @Test(arguments: [true, false]) func `the attempt after a kill at the rename leaves no part file`(isRenamed: Bool) async throws {
        try await ProcessFixture.with { fixture in
            let (transfer, source, checkpoint) = try await interrupted(fixture, after: 1_000_000)
            let reporter = AttemptReporter(
                progress: { _, _ in },
                checkpoint: { checkpoint in
                    try await transfer.recorder.reporter.save(checkpoint)
                    guard String(decoding: checkpoint.data, as: UTF8.self).contains("placing") else { return }
                    try Data("late".utf8).write(to: fixture.server.appending(path: ".tq-t-1.part"))
                    throw CancellationError()
                })
            await #expect(throws: CancellationError.self) { try await transfer.upload(source, from: checkpoint, reporting: reporter) }
            #expect(fixture.names == [".tq-t-1-2.part", ".tq-t-1.part"])
            if isRenamed {
                let partFile = fixture.server.appending(path: ".tq-t-1-2.part")
                try FileManager.default.moveItem(at: partFile, to: fixture.server.appending(path: "a.bin"))
            }
            var third = TestTransfer(fixture)
            third.partID = "t-1-3"
            _ = try await third.upload(source, from: transfer.recorder.checkpoints.last)
            #expect(third.stored == content(Self.size) && fixture.names == ["a.bin"])
        }
    }
}
