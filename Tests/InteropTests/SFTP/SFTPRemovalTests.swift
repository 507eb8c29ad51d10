import Foundation
import Locking
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct SFTPRemovalTests {
    /// The queue's time limit for one removal. A clock jump of this duration would end the removal before the server responds.
    private static let removalTimeout = Duration.seconds(120)

    /// The connection breaks after the cancellation. The queue removes the part file over a new connection.
    ///
    /// - Parameter limit: The number of bytes in the part file when the upload is cancelled.
    @Test(arguments: [0, 3 << 20]) func cancelledUploadLeavesNoPartFile(at limit: Int64) async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        // With a limit of 0, the server has created the part file, but the server's response is lost.
        let gate = TransferGate(of: folder.files, at: limit)
        let relay = try RawServer.relay(to: folder.server.port, passes: gate.passes)
        let (removals, didRemove) = AsyncStream.makeStream(of: Int64.self)
        let transport = ObservedTransport(base: SFTPTransport(), didRemove: { didRemove.yield($0.confirmed) })
        let clock = AdvanceableClock()
        let queue = try await interop.openQueue(
            Account("real", endpoints: [try folder.endpoint(port: relay.port)]), transports: [transport], clock: clock.engineClock)
        let session = try await queue.enqueue(
            try .upload([interop.file("large", size: 12 << 20)], to: "real", options: SessionOptions(overwrite: .always)))
        try await queue.start()
        for await _ in gate.holds { break }
        #expect(TransferGate.partFileSize(in: folder.files) != nil)
        try await queue.cancel(session.id, discarding: true)
        // The bytes that the gate stalled never arrive.
        gate.open()
        relay.cut()
        let advancing = Task {
            for await wait in clock.sleeps where wait >= .seconds(1) && wait != Self.removalTimeout { clock.advance(by: wait) }
        }
        clock.advance(by: .seconds(100))
        for await _ in removals { break }
        advancing.cancel()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path) == [])
        await queue.shutdown()
        relay.stop()
        await folder.close()
    }

    /// The connection stays open, and the server handles the received bytes before the request to remove the part file.
    @Test func cancelledUploadLeavesNoPartFileIfConnectionStaysOpen() async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let (removals, didRemove) = AsyncStream.makeStream(of: Int64.self)
        let transport = ObservedTransport(base: SFTPTransport(), didRemove: { didRemove.yield($0.confirmed) })
        let queue = try await interop.openQueue(Account("real", endpoints: [try folder.endpoint()]), transports: [transport])
        // The session is so slow that it is cancelled before it completes.
        try await queue.setRateLimit(1 << 20)
        let large = FilePath(folder.local.appending(path: "large").path)
        let file = try FileDescriptor.open(large, .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        try file.closeAfter { try file.resize(to: 4 << 30) }
        let session = try await queue.enqueue(try .upload([large], to: "real"))
        try await queue.start()
        await session.waitUntilSent(1)
        try await queue.cancel(session.id, discarding: true)
        for await _ in removals { break }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path) == [])
        await queue.shutdown()
        await folder.close()
    }

    /// The server renames the file, but the client does not receive the response. The next attempt recognizes the file as complete.
    @Test func recognizesRenamedFileAfterLostResponse() async throws {
        let folder = try await SFTPServerFolder()
        let final = folder.files.appending(path: "file")
        let gate = TransferGate { !FileManager.default.fileExists(atPath: final.path) }
        let relay = try RawServer.relay(to: folder.server.port, passes: gate.passes)
        let endpoint = try folder.endpoint(port: relay.port)
        let content = Data.nonRepeating(3 << 20)
        try content.write(to: folder.local.appending(path: "source"))
        let source = try folder.source("source")
        for policy in [OverwritePolicy.never, .always] {
            let checkpoints = Locked<[Checkpoint]>([])
            let upload = Task {
                try await folder.transfer(
                    .upload(source), "file", at: endpoint, AttemptOptions(overwrite: policy), recording: checkpoints)
            }
            for await _ in gate.holds { break }
            relay.cut()
            let error = await #expect(throws: TransferError.self) { try await upload.value }
            #expect(error?.failureClass == .transient && error?.code == .connectionLost, "\(error?.description ?? "")")
            _ = gate.takeCount(.fromClient)
            let checkpoint = try #require(checkpoints.withLock { $0.last })
            // This attempt connects directly, because the gate still stalls the relay.
            let receipt = try await folder.transfer(.upload(source), "file", from: checkpoint, AttemptOptions(overwrite: policy))
            #expect(receipt.bytes == Int64(content.count) && receipt.warnings.isEmpty)
            #expect(gate.takeCount(.fromClient) == 0)
            #expect(try Data(contentsOf: final) == content)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path) == ["file"])
            try FileManager.default.removeItem(at: final)
        }
        relay.stop()
        await folder.close()
    }
}
