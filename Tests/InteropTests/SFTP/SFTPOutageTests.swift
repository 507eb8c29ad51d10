import Foundation
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportSFTP

/// Interrupted transfers: an OpenSSH server crashes with all its connections and restarts, or the queue shuts down and reopens.
@Suite(.timeLimit(.minutes(10)))
struct SFTPOutageTests {
    private static let size = 100 << 20
    /// The position at which the gate stalls a transfer. The first checkpoint is stored after at most 64 MiB plus the bytes in flight, so
    /// it precedes this position.
    private static let gatePosition = 80 << 20

    private enum Interruption {
        case serverCrash
        case queueShutdown
    }

    @Test(arguments: [true, false]) func resumesAfterServerCrash(isUpload: Bool) async throws {
        try await transfer(isUpload: isUpload, interruptedBy: .serverCrash)
    }

    @Test(arguments: [true, false]) func resumesAfterQueueReopens(isUpload: Bool) async throws {
        try await transfer(isUpload: isUpload, interruptedBy: .queueShutdown)
    }

    private let clock = AdvanceableClock()

    private func openQueue(_ interop: InteropFixture, _ account: Account) async throws -> TransferQueue {
        try await interop.openQueue(account, transports: [SFTPTransport()], clock: clock.engineClock)
    }

    private func transfer(isUpload: Bool, interruptedBy interruption: Interruption) async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let server = folder.server
        let gate = TransferGate(of: isUpload ? folder.files : folder.local, at: Int64(Self.gatePosition))
        let relay = try RawServer.relay(to: server.port, passes: gate.passes)
        let account = Account("real", endpoints: [try folder.endpoint(port: relay.port)])
        let (source, target) = isUpload ? (folder.local, folder.files) : (folder.files, folder.local)
        let content = Data.nonRepeating(Self.size)
        try content.write(to: source.appending(path: "reel"))
        let options = SessionOptions(retry: RetryPolicy(maximumAttempts: 100_000))
        let request: SessionRequest =
            isUpload
            ? try .upload([FilePath(source.appending(path: "reel").path)], to: "real", options: options)
            : try .download(items: [.remote(RemotePath("reel"))], from: "real", to: FilePath(target.path), options: options)

        var queue = try await openQueue(interop, account)
        let (events, failures) = (queue.events, queue.events)
        // If a server can't be reached, the circuit breaker blocks it for at least 10 s after each failed probe.
        let advancing = Task { [clock] in
            for await event in failures {
                if case .attemptFailed = event.kind { clock.advance(by: .seconds(3_600)) }
            }
        }
        let id = try await queue.enqueue(request).id
        try await queue.start()
        var done: Int64 = 0
        for await statistics in try await queue.session(id).progress where statistics.bytesDone > 0 {
            done = statistics.bytesDone
            break
        }
        switch interruption {
        case .serverCrash:
            try await server.crash()
            let error = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
            #expect(error?.failureClass == .transient && error?.code == .connectionLost, "\(error?.description ?? "")")
            // Waits for an attempt that can't connect. Such an attempt must not affect the checkpoint.
            _ = await events.first {
                if case .attemptFailed(_, let error, _) = $0, error.failureClass == .unreachable { true } else { nil }
            }
        case .queueShutdown:
            await queue.shutdown()
        }
        let direction: RawServer.Direction = isUpload ? .fromClient : .fromServer
        _ = gate.takeCount(direction)
        gate.open()
        switch interruption {
        case .serverCrash: try await server.startAgain()
        case .queueShutdown:
            queue = try await openQueue(interop, account)
            try await queue.start()
        }
        #expect(try await queue.session(id).value.state == .completed)
        #expect(gate.takeCount(direction) <= (Int64(Self.size) - done) * 17 / 16, "the transfer resumes from a checkpoint")
        #expect(try Data(contentsOf: target.appending(path: "reel")) == content)
        await queue.shutdown()
        #expect(try FileManager.default.contentsOfDirectory(atPath: target.path) == ["reel"])
        advancing.cancel()
        relay.stop()
        await folder.close()
    }
}
