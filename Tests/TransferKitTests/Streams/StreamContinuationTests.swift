import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct StreamContinuationTests {
    private let fixture: QueueFixture
    private let name: RemotePath
    private let content = DownloadFixture.content(50_000)

    init() throws {
        fixture = try QueueFixture()
        name = try RemotePath("way/stream")
    }

    private var spool: FilePath { fixture.folder.path.appending("store").appending("spool") }
    private var spooled: [String] { (try? FileManager.default.contentsOfDirectory(atPath: spool.string)) ?? [] }

    /// Writes the first `count` bytes to a stream. Shuts the queue down after the server has confirmed 2,000 of these bytes.
    private func writeAndShutDown(_ count: Int, isFinished: Bool = false, length: Int64? = nil) async throws -> SessionID {
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("way/stream", atByte: 2_000)
        let (item, writer) = TransferItem.stream(as: name, length: length)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await queue.start()
        try await writer.write(content.prefix(count))
        if isFinished { writer.finish() }
        try await writer.flush()
        try await gate.reached()
        #expect(queue.unfinishedStreams == [], "the stream has a writer")
        await queue.shutdown()
        let late = await #expect(throws: TransferError.self) { try await writer.write([1]) }
        #expect(late != nil)
        gate.open()
        return session.id
    }

    /// Opens another connection to the queue's database. Changes through this connection wait while the queue writes.
    private func database() throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.busyMode = .timeout(60)
        return try DatabaseQueue(path: spool.removingLastComponent().appending("queue.sqlite").string, configuration: configuration)
    }

    @Test func sendsFinishedStreamWithoutProducer() async throws {
        let id = try await writeAndShutDown(50_000, isFinished: true)
        let queue = try await fixture.open()
        #expect(queue.unfinishedStreams == [])
        try await queue.start()
        let end = try await queue.session(id).value
        #expect(end.statistics.bytesDone == 50_000 && end.statistics.bytesTotal == 50_000)
        #expect(fixture.memory.contents(of: "way/stream") == content)
        #expect(fixture.memory.attempts.map(\.startOffset) == [0, 2_000])
        await queue.shutdown()
        try await fixture.open().shutdown()
        #expect(spooled == [])
    }

    @Test(arguments: [nil, 50_000] as [Int64?]) func continuesWithNewProducer(_ length: Int64?) async throws {
        let id = try await writeAndShutDown(30_000, length: length)
        let queue = try await fixture.open()
        let stream = try #require(queue.unfinishedStreams.first)
        #expect(queue.unfinishedStreams.count == 1)
        #expect(stream.session == id && stream.destination == name && stream.offset == 30_000)
        let writer = try queue.continueStream(stream)
        let secondError = #expect(throws: QueueError.self) { try queue.continueStream(stream) }
        #expect(secondError?.code == .invalidRequest && queue.unfinishedStreams == [])
        try await queue.start()
        try await writer.write(content.dropFirst(Int(stream.offset)))
        writer.finish()
        #expect(try await queue.session(id).value.statistics.bytesDone == 50_000)
        #expect(fixture.memory.contents(of: "way/stream") == content)
        #expect(fixture.memory.attempts.map(\.startOffset) == [0, 2_000])
        await queue.shutdown()
    }

    @Test func keepsDeclaredLengthAcrossRestart() async throws {
        let id = try await writeAndShutDown(30_000, length: 50_000)
        let queue = try await fixture.open()
        let writer = try queue.continueStream(try #require(queue.unfinishedStreams.first))
        try await queue.start()
        try await writer.write([1])
        writer.finish()
        let error = await #expect(throws: TransferError.self) { try await queue.session(id).value }
        #expect(error?.code == .producerGone && error?.message.contains("30001 bytes, but its declared length is 50000") == true)
        await queue.shutdown()
    }

    @Test func failsWithoutNewProducer() async throws {
        let id = try await writeAndShutDown(30_000)
        let queue = try await fixture.open()
        let stream = try #require(queue.unfinishedStreams.first)
        try await queue.start()
        let error = await #expect(throws: TransferError.self) { try await queue.session(id).value }
        #expect(error?.failureClass == .sourceLost && error?.code == .producerGone)
        #expect(error?.message.contains("the process that produced it has ended") == true)
        #expect(queue.unfinishedStreams == [])
        #expect(throws: QueueError.self) { try queue.continueStream(stream) }
        await queue.shutdown()
        try await fixture.open().shutdown()
        #expect(spooled == [])
    }

    @Test func failsIfServerForgetsReleasedBytes() async throws {
        let id = try await writeAndShutDown(50_000, isFinished: true)
        fixture.memory.faults.append(.forget)
        let queue = try await fixture.open()
        try await queue.start()
        let error = await #expect(throws: TransferError.self) { try await queue.session(id).value }
        #expect(error?.failureClass == .sourceLost && error?.message.contains("Cannot restart ") == true)
        await queue.shutdown()
    }

    @Test func keepsOnlyConfirmedBytesAfterReboot() async throws {
        let id = try await writeAndShutDown(30_000)
        let old = try #require(spooled.first)
        let new = "\(old.prefix(36))-another-boot"
        try FileManager.default.moveItem(atPath: spool.appending(old).string, toPath: spool.appending(new).string)
        let database = try self.database()
        try await database.write { try $0.execute(sql: "UPDATE file SET source = ?", arguments: [Data(new.utf8)]) }
        try database.close()
        let queue = try await fixture.open()
        let stream = try #require(queue.unfinishedStreams.first)
        #expect(stream.offset == 2_000)
        let writer = try queue.continueStream(stream)
        try await queue.start()
        try await writer.write(content.dropFirst(2_000))
        writer.finish()
        #expect(try await queue.session(id).value.statistics.bytesDone == 50_000)
        #expect(fixture.memory.contents(of: "way/stream") == content)
        await queue.shutdown()
    }

    @Test(arguments: [false, true]) func deletesCancelledOrRemovedStream(_ isRemoved: Bool) async throws {
        let id = try await writeAndShutDown(30_000)
        var queue = try await fixture.open()
        if isRemoved { try await queue.remove(id) } else { try await queue.cancel(id, discarding: true) }
        #expect(queue.unfinishedStreams == [])
        await queue.shutdown()
        queue = try await fixture.open()
        #expect(queue.unfinishedStreams == [] && spooled == [])
        await queue.shutdown()
    }

    /// The user can restore the session, so the bytes of its streams must stay, even if an attempt to restore the session is interrupted.
    @Test(arguments: [false, true]) func quarantineKeepsStreams(isInterrupted: Bool) async throws {
        var queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("way/stream", atByte: 2_000)
        let (item, writer) = TransferItem.stream(as: name)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await queue.start()
        try await writer.write(content.prefix(30_000))
        try await writer.flush()
        try await gate.reached()
        let database = try self.database()
        try await database.write { try $0.execute(sql: "UPDATE session SET direction = 'sideways'") }
        let events = queue.events
        #expect(try await queue.sessions().isEmpty)
        let reason: String? = await events.first { if case .quarantined(let reason) = $0 { reason } else { nil } }
        #expect(reason != nil)
        await queue.deferredDeletion.waitUntilDone()
        if isInterrupted {
            let trigger = "CREATE TRIGGER refusal BEFORE INSERT ON schedule BEGIN SELECT raise(ABORT, 'killed'); END"
            try await database.write { try $0.execute(sql: trigger) }
            await #expect(throws: QueueError.self) { try await queue.restoreQuarantined(1) }
            try await database.write { try $0.execute(sql: "DROP TRIGGER refusal") }
            await queue.shutdown()
            // Opening the queue removes spool files that no item needs.
            queue = try await fixture.open()
        }
        try await queue.restoreQuarantined(1)
        await queue.shutdown()
        let late = await #expect(throws: TransferError.self) { try await writer.write([1]) }
        #expect(late?.code == .cancelled)
        gate.open()
        try await database.write { try $0.execute(sql: "UPDATE session SET direction = 'upload'") }
        try database.close()

        queue = try await fixture.open()
        let stream = try #require(queue.unfinishedStreams.first)
        #expect(stream.session == session.id && stream.offset == 30_000)
        let newWriter = try queue.continueStream(stream)
        try await queue.start()
        try await newWriter.write(content.dropFirst(30_000))
        newWriter.finish()
        #expect(try await queue.session(session.id).value.statistics.bytesDone == 50_000)
        #expect(fixture.memory.contents(of: "way/stream") == content)
        await queue.shutdown()
    }

    @Test func continuesUnstartedStreamFromFirstByte() async throws {
        var queue = try await fixture.openWithAccounts()
        let (item, _) = TransferItem.stream(as: name)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        await queue.shutdown()
        queue = try await fixture.open()
        let stream = try #require(queue.unfinishedStreams.first)
        #expect(stream.offset == 0)
        let writer = try queue.continueStream(stream)
        try await queue.start()
        try await writer.write(content)
        writer.finish()
        _ = try await queue.session(session.id).value
        #expect(fixture.memory.contents(of: "way/stream") == content)
        await queue.shutdown()
    }
}
