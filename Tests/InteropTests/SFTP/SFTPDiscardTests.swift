import Foundation
import Locking
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportSFTP

/// The remains of a session on OpenSSH's server after a cancellation or a lost response.
@Suite(.timeLimit(.minutes(10)))
struct SFTPDiscardTests {
    /// The queue's time limit for one removal. A clock jump of this duration would end the removal before the server responds.
    private static let removalTimeout = Duration.seconds(120)

    /// - Parameter limit: The number of bytes in the part file when the upload is cancelled.
    @Test(arguments: [0, 3 << 20]) func cancelledUploadLeavesNoPart(at limit: Int64) async throws {
        let workshop = try Workshop()
        let folder = try await SFTPServerFolder()
        // At 0, the server has created the part file, and its response is lost.
        let gate = TransferGate(of: folder.files, at: limit)
        let relay = try RawServer.relay(to: folder.server.port, passes: gate.passes)
        let (discards, didDiscard) = AsyncStream.makeStream(of: Int64.self)
        let transport = FallbackTransport(base: SFTPTransport(), didDiscard: { didDiscard.yield($0.confirmed) })
        let clock = FallbackClock()
        let queue = try await workshop.openQueue(
            Account("real", endpoints: [try folder.endpoint(port: relay.port)]), transports: [transport], clock: clock.engineClock)
        let session = try await queue.enqueue(
            try .upload([workshop.file("large", size: 12 << 20)], to: "real", options: SessionOptions(overwrite: .always)))
        try await queue.start()
        for await _ in gate.holds { break }
        #expect(TransferGate.partSize(in: folder.files) != nil)
        try await queue.cancel(session.id)
        // The bytes that were held up never arrive.
        gate.open()
        relay.cut()
        let impatience = Task {
            for await wait in clock.waits where wait >= .seconds(1) && wait != Self.removalTimeout { clock.jump(by: wait) }
        }
        clock.jump(by: .seconds(100))
        for await _ in discards { break }
        impatience.cancel()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path) == [])
        await queue.shutdown()
        relay.stop()
        await folder.close()
    }

    /// The connection stays open, and the server handles the received bytes before the request to remove the part file.
    @Test func cancelledUploadLeavesNoPartOnSameConnection() async throws {
        let workshop = try Workshop()
        let folder = try await SFTPServerFolder()
        let (discards, didDiscard) = AsyncStream.makeStream(of: Int64.self)
        let transport = FallbackTransport(base: SFTPTransport(), didDiscard: { didDiscard.yield($0.confirmed) })
        let queue = try await workshop.openQueue(Account("real", endpoints: [try folder.endpoint()]), transports: [transport])
        // So slow that it is cancelled before it is complete.
        try await queue.setRateLimit(1 << 20)
        let large = FilePath(folder.local.appending(path: "large").path)
        let file = try FileDescriptor.open(large, .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        try file.closeAfter { try file.resize(to: 4 << 30) }
        let session = try await queue.enqueue(try .upload([large], to: "real"))
        try await queue.start()
        await session.waitUntilSent(1)
        try await queue.cancel(session.id)
        for await _ in discards { break }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path) == [])
        await queue.shutdown()
        await folder.close()
    }

    /// The server renamed the file, and the client does not receive the response.
    @Test func settlesRenameAfterLostResponse() async throws {
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
                try await folder.move(
                    .upload(source), "file", at: endpoint, AttemptOptions(overwrite: policy), telling: checkpoints)
            }
            for await _ in gate.holds { break }
            relay.cut()
            let error = await #expect(throws: TransferError.self) { try await upload.value }
            #expect(error?.failureClass == .transient && error?.code == .connectionLost, "\(error?.description ?? "")")
            _ = gate.takeCount(.fromClient)
            let checkpoint = try #require(checkpoints.withLock { $0.last })
            // Not through the relay, which still holds up all bytes.
            let receipt = try await folder.move(.upload(source), "file", from: checkpoint, AttemptOptions(overwrite: policy))
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
