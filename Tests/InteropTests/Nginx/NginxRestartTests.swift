import Foundation
import Locking
import Logging
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransportTUS

/// Uploads by programs that are repeatedly killed and restarted, through an nginx that buffers each request body until it is complete.
@Suite(.timeLimit(.minutes(5))) struct NginxRestartTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    private struct NoCredentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret("") }
    }

    /// The fields of a checkpoint that describe an unanswered request.
    private struct CheckpointExcerpt: Decodable {
        struct Request: Decodable {
            var taken: Int
        }
        var unanswered: Request?
    }

    private enum Event: Sendable {
        case stored(Checkpoint)
        /// The program has sent all bytes that this run permits.
        case sent
    }

    /// Simulates a program that is killed after it has sent `limit` bytes, as soon as its checkpoint describes the unanswered request.
    ///
    /// - Returns: The last checkpoint, and whether the upload completed.
    private func run(
        _ path: FilePath, to endpoint: Endpoint, from start: Checkpoint?, sending limit: Int
    ) async throws -> (checkpoint: Checkpoint?, isComplete: Bool) {
        let transport = TUSTransport()
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: endpoint, source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)),
            remotePath: try RemotePath("file.bin"), checkpoint: start, credentials: NoCredentials(), logger: Logger(label: "test"))
        let (events, event) = AsyncStream.makeStream(of: Event.self)
        let left = Locked(limit)
        let reporter = AttemptReporter(
            progress: { _, _ in }, checkpoint: { event.yield(.stored($0)) },
            allowance: { wanted in
                let granted = left.withLock { left in
                    defer { left -= min(left, wanted) }
                    return min(left, wanted)
                }
                if granted == 0 { event.yield(.sent) }
                return Allowance(bytes: granted, retryAfter: granted == 0 ? .seconds(3_600) : .zero)
            })
        let program = Task {
            defer { event.finish() }
            return try await transport.perform(attempt, reporting: reporter)
        }
        var checkpoint = start
        var (taken, hasSent) = (0, false)
        for await event in events {
            switch event {
            case .stored(let saved):
                checkpoint = saved
                taken = try JSONDecoder().decode(CheckpointExcerpt.self, from: saved.data).unanswered?.taken ?? 0
            case .sent: hasSent = true
            }
            // The program is killed once its checkpoint includes at least half of the sent bytes. If the program has sent 1 MiB or less, it
            // may not have stored a checkpoint for these bytes, so it is killed immediately.
            let sent = limit - Int((checkpoint?.confirmed ?? 0) - (start?.confirmed ?? 0))
            guard hasSent, 2 * taken >= sent || sent <= 1 << 20 else { continue }
            program.cancel()
            break
        }
        let result = await program.result
        await transport.shutdown()
        return (checkpoint, (try? result.get()) != nil)
    }

    @Test func eachRunMakesProgress() async throws {
        let server = interop.loopbackServer(LoopbackOptions(usesRelativeLocation: true))
        let port = try #require(try await server.start().port)
        let proxy = try await NginxProxy.start(in: interop.folder.appending(path: "proxy"), forwardingTo: port)
        let endpoint = Endpoint.tus(
            "https://127.0.0.1:\(proxy.port)/files/", options: TUSOptions(requests: RequestOptions(caFile: proxy.certificate)))
        let (size, limit) = (20 << 20, 6 << 20)
        let path = try interop.file("file", size: size)
        var checkpoint: Checkpoint?
        var confirmed: [Int64] = []
        var isComplete = false
        while !isComplete, confirmed.count < 12 {
            (checkpoint, isComplete) = try await run(path, to: endpoint, from: checkpoint, sending: limit)
            confirmed.append(checkpoint?.confirmed ?? 0)
        }
        #expect(isComplete)
        #expect(confirmed.first == 0, "nginx forwarded no byte of the first request, which declared the whole file as its body")
        #expect(zip(confirmed.dropFirst(), confirmed).allSatisfy { $0 > $1 }, "\(confirmed)")
        #expect(server.statistics.bytesStored == size)
        await server.stop()
    }
}
