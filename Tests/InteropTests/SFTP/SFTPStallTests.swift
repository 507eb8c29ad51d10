import Foundation
import Locking
import ScriptedSFTP
import Testing
import TransferCore
import TransferKit
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct SFTPStallTests {
    /// The server confirms half of the file. The session allows only one attempt, so its error names the part file that stays on the server.
    @Test func errorOfStalledUploadNamesPartFile() async throws {
        let interop = try InteropFixture()
        let (size, confirmedWrites) = (4 << 20, 64)
        let (silences, silence) = AsyncStream.makeStream(of: Void.self)
        let writes = Locked(0)
        let peer = ScriptedPeer { request in
            switch request.type {
            case .lstat: return [ScriptedPeer.status(request.id, .noSuchFile)]
            case .fstat: return [ScriptedPeer.attributes(request.id, size: UInt64(size))]
            case .open: return [ScriptedPeer.handle(request.id)]
            case .write:
                let count = writes.withLock { count in
                    count += 1
                    return count
                }
                guard count > confirmedWrites else { return [ScriptedPeer.status(request.id, .ok)] }
                silence.yield()
                return []
            default: return [ScriptedPeer.status(request.id, .ok)]
            }
        }
        let clock = AdvanceableClock()
        let queue = try await interop.openQueue(
            Account("real", endpoints: [.sftp("sftp://me@peer/")]),
            transports: [SFTPTransport(connector: PeerConnector(peer: peer))], clock: clock.engineClock)
        let options = SessionOptions(
            retry: RetryPolicy(base: .zero, maximumAttempts: 1), stallTimeout: .seconds(60), responseTimeout: .seconds(60))
        let session = try await queue.enqueue(try .upload([interop.file("reel", size: size)], to: "real", options: options))
        try await queue.start()
        for await _ in silences { break }
        let advancing = Task { await clock.advanceInSteps(by: .seconds(600)) }
        let error = await #expect(throws: TransferError.self) { try await session.value }
        advancing.cancel()
        #expect(error?.code == .stalled)
        let cause = error?.cause ?? ""
        #expect(cause.hasPrefix("unfinished part file at peer: /.tq-\(session.id)-") && cause.hasSuffix(".part"), "\(cause)")
        await queue.shutdown()
    }
}
