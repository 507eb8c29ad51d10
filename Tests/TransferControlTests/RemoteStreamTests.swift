import Foundation
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransportTesting

/// Streams that a client sends to the owner of a queue through the control socket.
@Suite struct RemoteStreamTests {
    private static let content = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 5) })

    @Test func sendsStreamToOwner() async throws {
        try await ControlFixture.with { fixture in
            let (queue, remote) = (fixture.queue, fixture.remote)
            try await queue.start()
            let writer = try await remote.enqueueStream(as: "stream", .upload(items: [], to: "a", name: "live"))
            #expect(!writer.isDuplicate)
            #expect(try await queue.status(of: writer.session).name == "live")
            for start in stride(from: 0, to: Self.content.count, by: 700_000) {
                try await writer.write(Self.content.dropFirst(start).prefix(700_000))
            }
            try await writer.finish()
            #expect(try await remote.value(of: writer.session).state == .completed)
            #expect(fixture.memory.contents(of: "stream") == Self.content)
            await #expect(throws: QueueError.self) { try await writer.write([1]) }
        }
    }

    /// After `finish()`, the whole stream is in the storage folder.
    @Test func sessionDoesNotNeedWriterAfterFinish() async throws {
        try await ControlFixture.with { fixture in
            let gate = fixture.memory.gate("stream", atByte: 1)
            try await fixture.queue.start()
            var writer: RemoteStreamWriter? = try await fixture.remote.enqueueStream(as: "stream", .upload(items: [], to: "a"))
            let session = try #require(writer?.session)
            try await writer?.write(Data([1, 2, 3]))
            try await gate.reached()
            try await writer?.finish()
            writer = nil
            gate.open()
            #expect(try await fixture.remote.value(of: session).state == .completed)
            #expect(fixture.memory.contents(of: "stream") == Data([1, 2, 3]))
        }
    }

    @Test(arguments: [false, true]) func incompleteStreamFailsSession(isReleased: Bool) async throws {
        try await ControlFixture.with { fixture in
            try await fixture.queue.start()
            var writer: RemoteStreamWriter? = try await fixture.remote.enqueueStream(as: "stream", .upload(items: [], to: "a"))
            let session = try #require(writer?.session)
            try await writer?.write(Data([1, 2, 3]))
            if !isReleased { try await writer?.fail(CocoaError(.fileReadUnknown)) }
            writer = nil
            let error = await #expect(throws: TransferError.self) { try await fixture.remote.value(of: session) }
            #expect(error?.failureClass == .sourceLost)
            if isReleased { #expect(error?.message.contains("the process that produced it exited") == true) }
            #expect(fixture.memory.contents(of: "stream") == nil)
        }
    }

    @Test func cancelledSessionEndsStream() async throws {
        try await ControlFixture.with { fixture in
            let writer = try await fixture.remote.enqueueStream(as: "stream", .upload(items: [], to: "a"))
            let writing = Task {
                while true { try await writer.write(Data(repeating: 7, count: 1 << 20)) }
            }
            try await fixture.queue.cancel(writer.session)
            await #expect(throws: (any Error).self) { try await writing.value }
        }
    }

    @Test func duplicateHasNoStream() async throws {
        try await ControlFixture.with { fixture in
            var request = try SessionRequest.upload(items: [], to: "a")
            request.deduplicationKey = "key"
            let first = try await fixture.remote.enqueueStream(as: "stream", request)
            request.id = SessionID()
            let second = try await fixture.remote.enqueueStream(as: "stream", request)
            #expect(second.isDuplicate && second.session == first.session && !first.isDuplicate)
            await #expect(throws: QueueError.self) { try await second.write([1]) }
        }
    }

    @Test func rejectsInvalidRequests() async throws {
        try await ControlFixture.with { fixture in
            let remote = fixture.remote
            await #expect { try await remote.enqueueStream(as: "x", .upload(items: [], to: "none")) } throws: {
                ($0 as? QueueError)?.code == .noSuchAccount
            }
            await #expect { try await remote.enqueueStream(as: "x", fixture.upload("a")) } throws: {
                ($0 as? QueueError)?.code == .invalidRequest
            }
            await #expect { try await remote.enqueueStream(as: "x", .upload(items: [], to: "a"), length: -1) } throws: {
                ($0 as? QueueError)?.code == .invalidRequest
            }
            await #expect(throws: TransferError.self) { try await remote.enqueueStream(as: "../x", .upload(items: [], to: "a")) }
            let ids = try await remote.sessionIDs()
            #expect(ids.isEmpty)
        }
    }
}
