import Foundation
import Locking
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportSFTP

/// Interrupted transfers: an OpenSSH server crashes with all its connections and restarts, the queue shuts down and reopens, or the network
/// breaks connections.
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
        // If a server does not respond, the circuit breaker blocks it for 30 s, and for longer after each failed attempt.
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

    // MARK: Broken paths

    /// The connection breaks more often than the maximum number of attempts. Each break occurs before the attempt's first regular
    /// checkpoint.
    @Test(arguments: [true, false]) func completesOverUnreliablePath(isUpload: Bool) async throws {
        let (size, bytesPerConnection) = (64 << 20, 4 << 20)
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let direction: RawServer.Direction = isUpload ? .fromClient : .fromServer
        let relay = Locked<RawServer?>(nil)
        let counts = Locked<(all: Int, cuts: Int)>((0, 0))
        let started = try RawServer.relay(
            to: folder.server.port,
            passes: { way, count in
                guard way == direction else { return true }
                let isCut = counts.withLock { counts in
                    counts.all += count
                    guard counts.all > (counts.cuts + 1) * bytesPerConnection else { return false }
                    counts.cuts += 1
                    return true
                }
                if isCut { relay.withLock { $0 }?.cut() }
                return !isCut
            })
        relay.withLock { $0 = started }
        let account = Account("real", endpoints: [try folder.endpoint(port: started.port)])
        let (source, target) = isUpload ? (folder.local, folder.files) : (folder.files, folder.local)
        let content = Data.nonRepeating(size)
        try content.write(to: source.appending(path: "reel"))
        let request: SessionRequest =
            isUpload
            ? try .upload([FilePath(source.appending(path: "reel").path)], to: "real")
            : try .download(items: [.remote(RemotePath("reel"))], from: "real", to: FilePath(target.path))
        let queue = try await openQueue(interop, account)
        let id = try await queue.enqueue(request).id
        try await queue.start()
        #expect(try await queue.session(id).value.state == .completed)
        let (all, cuts) = counts.withLock { $0 }
        #expect(cuts > RetryPolicy().maximumAttempts && all < 2 * size, "\(cuts) cuts, \(all) bytes")
        #expect(try Data(contentsOf: target.appending(path: "reel")) == content)
        await queue.shutdown()
        #expect(try FileManager.default.contentsOfDirectory(atPath: target.path) == ["reel"])
        started.stop()
        relay.withLock { $0 = nil }
        await folder.close()
    }

    /// At most 4 MiB may be unacknowledged. Each connection breaks after 5 MiB, so the server has acknowledged some bytes of each
    /// connection. The next connection continues after these bytes, unless the connection breaks while the server syncs the part file: if
    /// that sync failed, the acknowledged bytes may be lost.
    @Test func eachShortConnectionMakesProgress() async throws {
        let (size, window, bytesPerConnection) = (64 << 20, 4 << 20, 5 << 20)
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let relay = Locked<RawServer?>(nil)
        let state = Locked((sent: 0, cuts: 0, passed: 0))
        let started = try RawServer.relay(
            to: folder.server.port,
            passes: { way, count in
                guard way == .fromClient else { return true }
                let isCut = state.withLock { state in
                    state.sent += count
                    state.passed += count
                    guard state.passed > bytesPerConnection else { return false }
                    (state.cuts, state.passed) = (state.cuts + 1, 0)
                    return true
                }
                if isCut { relay.withLock { $0 }?.cut() }
                return !isCut
            })
        relay.withLock { $0 = started }
        let positions = Locked<[Int64]>([])
        let transport = ObservedTransport(
            base: SFTPTransport(),
            willBegin: { attempt in
                guard let stored = attempt.checkpoint, let checkpoint = UploadCheckpoint(stored) else { return }
                positions.withLock { $0.append(checkpoint.acknowledged ?? stored.confirmed) }
            })
        let content = Data.nonRepeating(size)
        try content.write(to: folder.local.appending(path: "reel"))
        let account = Account("real", endpoints: [try folder.endpoint(port: started.port)])
        let log = RecordedLog()
        let queue = try await interop.openQueue(account, transports: [transport], clock: clock.engineClock, logger: log.logger)
        let session = try await queue.enqueue(.upload([FilePath(folder.local.appending(path: "reel").path)], to: "real"))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        let (sent, cuts, reached) = (state.withLock { $0.sent }, state.withLock { $0.cuts }, positions.withLock { $0 })
        #expect(cuts > RetryPolicy().maximumAttempts && reached.count == cuts)
        #expect(zip(reached, reached.dropFirst()).allSatisfy { $0 <= $1 }, "\(reached)")
        let unansweredSyncs = log.metadata(of: "fsync ").count { $0["status"] != "0" }
        #expect(Set(reached).count >= reached.count - unansweredSyncs, "\(reached), \(unansweredSyncs) unanswered syncs")
        #expect(sent <= size * 11 / 10 + cuts * window, "\(cuts) cuts, \(sent) bytes")
        #expect(try Data(contentsOf: folder.files.appending(path: "reel")) == content)
        await queue.shutdown()
        started.stop()
        relay.withLock { $0 = nil }
        await folder.close()
    }

    /// Each connection breaks after 44 MiB, so less than a tenth of the bytes is sent again: at most 4 MiB are unacknowledged. If the
    /// connection of an upload breaks while the server syncs the part file, the next attempt has no acknowledged position, and may send
    /// all bytes of that connection again. This is rare, and impossible without syncs.
    ///
    /// - Parameter syncs: Whether the endpoint requests syncs of uploaded files.
    @Test(arguments: [(true, true), (true, false), (false, true)])
    func longConnectionsRepeatAtMostTenth(isUpload: Bool, syncs: Bool) async throws {
        let (size, bytesPerConnection) = (110 << 20, 44 << 20)
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let direction: RawServer.Direction = isUpload ? .fromClient : .fromServer
        let passed = Locked(0)
        let relay = try RawServer.relay(
            to: folder.server.port, limit: isUpload ? nil : bytesPerConnection, clientLimit: isUpload ? bytesPerConnection : nil,
            passes: { way, count in
                if way == direction { passed.withLock { $0 += count } }
                return true
            })
        let account = Account("real", endpoints: [try folder.endpoint(port: relay.port, ["sync": "\(syncs)"])])
        let (source, target) = isUpload ? (folder.local, folder.files) : (folder.files, folder.local)
        let content = Data.nonRepeating(size)
        try content.write(to: source.appending(path: "reel"))
        let request: SessionRequest =
            isUpload
            ? try .upload([FilePath(source.appending(path: "reel").path)], to: "real")
            : try .download(items: [.remote(RemotePath("reel"))], from: "real", to: FilePath(target.path))
        let brokenSyncs = Locked(0)
        let observed = ObservedTransport(
            base: SFTPTransport(),
            willBegin: { attempt in
                guard syncs, let stored = attempt.checkpoint, UploadCheckpoint(stored)?.acknowledged == nil else { return }
                brokenSyncs.withLock { $0 += 1 }
            })
        let transport: any Transport = if isUpload { observed } else { SFTPTransport() }
        let queue = try await interop.openQueue(account, transports: [transport], clock: clock.engineClock)
        let id = try await queue.enqueue(request).id
        try await queue.start()
        #expect(try await queue.session(id).value.state == .completed)
        let (bytes, broken) = (passed.withLock { $0 }, brokenSyncs.withLock { $0 })
        #expect(relay.accepted >= 3, "at least two connections broke")
        #expect(broken <= 1, "\(broken) attempts without an acknowledged position")
        #expect(bytes <= size * 11 / 10 + broken * bytesPerConnection, "\(bytes) bytes over \(relay.accepted) connections")
        #expect(try Data(contentsOf: target.appending(path: "reel")) == content)
        await queue.shutdown()
        relay.stop()
        await folder.close()
    }
}
