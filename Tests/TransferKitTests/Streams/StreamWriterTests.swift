import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct StreamWriterTests {
    private let fixture: QueueFixture
    private let name: RemotePath

    init() throws {
        fixture = try QueueFixture()
        name = try RemotePath("stream")
    }

    @Test func sendsWrittenBytes() async throws {
        let queue = try await fixture.openWithAccounts()
        let (item, writer) = TransferItem.stream(as: name, bufferSize: 10)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await queue.start()
        for number in 0..<100 { try await writer.write(Data("line \(number)\n".utf8)) }
        try await writer.write([UInt8]())
        try await writer.write([0x2E as UInt8])
        writer.finish()
        _ = try await session.value
        let expected = (0..<100).map { "line \($0)\n" }.joined() + "."
        #expect(fixture.memory.contents(of: "stream") == Data(expected.utf8))
        let late = await #expect(throws: TransferError.self) { try await writer.write([1]) }
        #expect(late != nil)
        await queue.shutdown()
    }

    @Test func writeWaitsWhileBufferIsFull() async throws {
        let queue = try await fixture.openWithAccounts()
        let (item, writer) = TransferItem.stream(as: name, bufferSize: 4)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await writer.write([1, 2])
        try await writer.write([3, 4])
        let third = Task { try await writer.write([5]) }
        third.cancel()
        await #expect(throws: CancellationError.self, "the buffer stays full until the session runs") { try await third.value }
        try await queue.start()
        try await writer.write([6])
        writer.finish()
        _ = try await session.value
        #expect(fixture.memory.contents(of: "stream") == Data([1, 2, 3, 4, 6]))
        await queue.shutdown()
    }

    /// A producer on a timer must not wait, so it writes only the bytes that fit into the buffer.
    @Test func tryWriteAppendsWhatFits() async throws {
        let queue = try await fixture.openWithAccounts()
        let (item, writer) = TransferItem.stream(as: name, bufferSize: 4)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        #expect(writer.canWrite)
        #expect(try writer.tryWrite([1, 2, 3]) == 3)
        #expect(try writer.tryWrite([4, 5, 6]) == 1)
        #expect(try writer.tryWrite([5]) == 0 && !writer.canWrite)
        let waiting = Task { try await writer.whenWritable() }
        waiting.cancel()
        await #expect(throws: CancellationError.self, "the buffer stays full until the session runs") { try await waiting.value }
        try await queue.start()
        try await writer.whenWritable()
        #expect(try writer.tryWrite([5, 6]) == 2)
        writer.finish()
        #expect(writer.canWrite, "a finished writer counts as writable, so that the next write reports the end")
        #expect(throws: TransferError.self) { try writer.tryWrite([7]) }
        await #expect(throws: TransferError.self) { try await writer.whenWritable() }
        _ = try await session.value
        #expect(fixture.memory.contents(of: "stream") == Data([1, 2, 3, 4, 5, 6]))
        await queue.shutdown()
    }

    @Test func outputStreamWritesToWriter() async throws {
        let queue = try await fixture.openWithAccounts()
        let (item, writer) = TransferItem.stream(as: name, bufferSize: 1_000)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await queue.start()
        let content = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
        // Writes block while the buffer is full, so they run on a separate thread.
        let result = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let stream = writer.makeOutputStream()
                stream.open()
                var written = 0
                while written < content.count {
                    let count = unsafe content.dropFirst(written).withUnsafeBytes { bytes in
                        unsafe bytes.assumingMemoryBound(to: UInt8.self).baseAddress.map { unsafe stream.write($0, maxLength: bytes.count) }
                            ?? -1
                    }
                    guard count > 0 else { break }
                    written += count
                }
                stream.close()
                continuation.resume(returning: (written, stream.streamStatus, stream.hasSpaceAvailable))
            }
        }
        #expect(result.0 == content.count && result.1 == .closed && !result.2)
        _ = try await session.value
        #expect(fixture.memory.contents(of: "stream") == content)
        await queue.shutdown()
    }

    /// A closure that throws must not complete the item, even if the closure closes the stream.
    @Test(arguments: [false, true]) func scopedOutputStreamEndsWithClosure(fails: Bool) async throws {
        let queue = try await fixture.openWithAccounts()
        let (item, writer) = TransferItem.stream(as: name)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await queue.start()
        let result = Result {
            try writer.withOutputStream { stream in
                defer { stream.close() }
                let count = unsafe [UInt8](repeating: 7, count: 10).withUnsafeBufferPointer { bytes in
                    unsafe bytes.baseAddress.map { unsafe stream.write($0, maxLength: bytes.count) } ?? 0
                }
                if fails { throw CocoaError(.fileNoSuchFile) }
                return count
            }
        }
        if fails {
            #expect(throws: CocoaError.self) { try result.get() }
            let error = await #expect(throws: TransferError.self) { try await session.value }
            #expect(error?.failureClass == .sourceLost)
        } else {
            #expect(try result.get() == 10)
            _ = try await session.value
            #expect(fixture.memory.contents(of: "stream") == Data(repeating: 7, count: 10))
        }
        await queue.shutdown()
    }

    @Test func outputStreamFailsWithoutReader() async throws {
        let queue = try await fixture.openWithAccounts()
        let (item, writer) = TransferItem.stream(as: name)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await queue.cancel(session.id, discarding: true)
        let stream = writer.makeOutputStream()
        stream.open()
        let count = unsafe [UInt8(1)].withUnsafeBufferPointer { bytes in
            unsafe bytes.baseAddress.map { unsafe stream.write($0, maxLength: 1) } ?? 0
        }
        #expect(count == -1 && stream.streamStatus == .error && stream.streamError is TransferError)
        await queue.shutdown()
    }

    @Test func sendsInputStream() async throws {
        let queue = try await fixture.openWithAccounts()
        let content = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        let session = try await queue.enqueue(.upload(items: [.stream(InputStream(data: content), as: name)], to: "a"))
        try await queue.start()
        _ = try await session.value
        #expect(fixture.memory.contents(of: "stream") == content)
        let missing = try #require(InputStream(fileAtPath: fixture.folder.path.appending("missing").string))
        let failing = try await queue.enqueue(.upload(items: [.stream(missing, as: RemotePath("other"))], to: "a"))
        let error = await #expect(throws: TransferError.self) { try await failing.value }
        #expect(error?.failureClass == .sourceLost)
        await queue.shutdown()
    }

    @Test func flushWaitsUntilEverythingIsOnDisk() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("stream", atByte: 2_000)
        let (item, writer) = TransferItem.stream(as: name)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await writer.flush()
        try await writer.write(Data(repeating: 7, count: 5_000))
        let early = Task { try await writer.flush() }
        early.cancel()
        await #expect(throws: CancellationError.self, "nothing is stored before the session runs") { try await early.value }
        try await queue.start()
        try await writer.flush()
        let folder = fixture.folder.path.appending("store").appending("spool")
        let file = folder.appending(try #require(try FileManager.default.contentsOfDirectory(atPath: folder.string).first))
        #expect(try SourceIdentity(ofFileAt: file).size == 5_000)
        try await gate.reached()
        writer.finish()
        try await writer.flush()
        gate.open()
        _ = try await session.value
        try await writer.flush()
        await queue.shutdown()
    }

    @Test func flushThrowsEarlierFailure() async throws {
        let queue = try await fixture.openWithAccounts()
        let (item, writer) = TransferItem.stream(as: name)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await writer.write([1, 2, 3])
        let waiting = Task { try await writer.flush() }
        try await queue.cancel(session.id, discarding: true)
        await #expect(throws: TransferError.self) { try await waiting.value }
        let (_, failedWriter) = TransferItem.stream(as: name)
        try await failedWriter.write([1])
        failedWriter.fail(Trouble())
        await #expect(throws: Trouble.self) { try await failedWriter.flush() }
        await queue.shutdown()
    }

    struct Trouble: Error, CustomStringConvertible {
        let description = "The tape is torn."
    }

    @Test func failedWriterFailsItem() async throws {
        let queue = try await fixture.openWithAccounts()
        let (item, writer) = TransferItem.stream(as: name)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await queue.start()
        try await writer.write([1, 2, 3])
        writer.fail(Trouble())
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.failureClass == .sourceLost && error?.message.contains("The tape is torn.") == true)
        #expect(fixture.memory.contents(of: "stream") == nil)
        await queue.shutdown()
    }

    @Test func releasedWriterFailsItem() async throws {
        let queue = try await fixture.openWithAccounts()
        let session: TransferSession
        do {
            let (item, writer) = TransferItem.stream(as: name)
            session = try await queue.enqueue(.upload(items: [item], to: "a"))
            try await writer.write([1, 2, 3])
        }
        try await queue.start()
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.failureClass == .sourceLost && error?.message.contains("before finish() was called") == true)
        await queue.shutdown()
    }

    enum Ending: CaseIterable, Sendable {
        case cancel, remove, shutdown, failure
    }

    @Test(arguments: Ending.allCases) func writeThrowsWithoutReader(_ ending: Ending) async throws {
        let queue = try await fixture.openWithAccounts()
        let (item, writer) = TransferItem.stream(as: name, bufferSize: 1)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        if ending == .failure {
            fixture.memory.failNext(with: TransferError(.permanent, .rejected, "No."))
            try await queue.start()
        }
        let writing = Task {
            while true { try await writer.write(Data(repeating: 7, count: 1 << 20)) }
        }
        switch ending {
        case .cancel: try await queue.cancel(session.id, discarding: true)
        case .remove: try await queue.remove(session.id)
        case .shutdown: await queue.shutdown()
        case .failure: await #expect(throws: TransferError.self) { try await session.value }
        }
        await #expect(throws: TransferError.self) { try await writing.value }
        await queue.shutdown()
    }
}
