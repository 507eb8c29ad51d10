import Dispatch
import Foundation
import Locking
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportSFTP

/// Sessions of one account. The sessions share the account's connections to an OpenSSH server.
@Suite(.timeLimit(.minutes(10)))
struct SFTPBusyConnectionTests {
    /// A network path that stalls one connection and no others.
    private final class StallingPath: Sendable {
        /// Yields when the connection stalls.
        let stalls: AsyncStream<Void>
        private let stallContinuation: AsyncStream<Void>.Continuation
        private let direction: RawServer.Direction
        private let isDue: @Sendable () -> Bool
        private let hasStalled = Locked(false)
        private let released = DispatchSemaphore(value: 0)

        /// - Parameters:
        ///   - direction: The direction that stalls.
        ///   - isDue: Whether to stall the connection that is passing bytes. Called for each block of bytes.
        init(_ direction: RawServer.Direction, when isDue: @escaping @Sendable () -> Bool) {
            (self.direction, self.isDue) = (direction, isDue)
            (stalls, stallContinuation) = AsyncStream.makeStream()
        }

        /// Passed as the argument `passes` of ``RawServer/relay(to:limit:clientLimit:resets:bufferSize:admits:observes:passes:)``. Blocks the relay's
        /// thread while the connection stalls.
        func passes(_ way: RawServer.Direction, _: Int) -> Bool {
            guard way == direction, isDue() else { return true }
            let isFirst = hasStalled.withLock { hasStalled in
                defer { hasStalled = true }
                return !hasStalled
            }
            guard isFirst else { return true }
            stallContinuation.yield()
            released.wait()
            return true
        }

        func release() { released.signal() }
    }

    /// The connection stops in the middle of the file. The stall timeout ends the attempt, and a later attempt completes the file.
    @Test(arguments: [true, false]) func stalledTransferIsRetried(isUpload: Bool) async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let (source, target) = isUpload ? (folder.local, folder.files) : (folder.files, folder.local)
        let path = StallingPath(isUpload ? .fromClient : .fromServer) { TransferGate.partFileSize(in: target) ?? 0 >= 4 << 20 }
        let relay = try RawServer.relay(to: folder.server.port, passes: path.passes)
        let account = Account("real", endpoints: [try folder.endpoint(port: relay.port, ["maxConnections": "1"])])
        let queue = try await interop.openQueue(account, transports: [SFTPTransport()])
        let content = Data.nonRepeating(16 << 20)
        try content.write(to: source.appending(path: "large"))
        // On a busy machine, other attempts may also stall. They are retried in the same way.
        let options = SessionOptions(retry: RetryPolicy(maximumAttempts: 1_000), stallTimeout: .seconds(1))
        let events = queue.events
        let session = try await queue.enqueue(
            isUpload
                ? try .upload([FilePath(source.appending(path: "large").path)], to: "real", options: options)
                : try .download(["large"], from: "real", to: FilePath(target.path), options: options))
        try await queue.start()
        let failure = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
        #expect(failure?.code == .stalled)
        #expect(try await session.value.state == .completed)
        #expect(try Data(contentsOf: target.appending(path: "large")) == content)
        path.release()
        await queue.shutdown()
        relay.stop()
    }

    /// The large file's connection stalls, so all later requests on that connection stall too. The small files use another connection.
    @Test(arguments: [true, false]) func smallFilesOvertakeLargeFile(isUpload: Bool) async throws {
        let interop = try InteropFixture()
        var policy = PoolPolicy()
        // By default, the stalled connection counts as silent and as lost after 45 s, and the large file then gets a third connection. A busy
        // machine may need longer for the small files.
        (policy.silence, policy.keepaliveInterval) = (.seconds(3_600), .seconds(3_600))
        // If a new connection takes longer than this interval, a small file uses the stalled connection instead, which it must not do here.
        policy.activityInterval = .seconds(3_600)
        let folder = try await SFTPServerFolder(policy: policy)
        let (source, target) = isUpload ? (folder.local, folder.files) : (folder.files, folder.local)
        let path = StallingPath(isUpload ? .fromClient : .fromServer) { TransferGate.partFileSize(in: target) ?? 0 >= 4 << 20 }
        let relay = try RawServer.relay(to: folder.server.port, passes: path.passes)
        let account = Account("real", endpoints: [try folder.endpoint(port: relay.port, ["maxConnections": "2"])])
        let queue = try await interop.openQueue(account, transports: [folder.transport])
        try await queue.setMaxConcurrentSessions(2)
        let content = Data.nonRepeating(48 << 20)
        try content.write(to: source.appending(path: "large"))
        let names = (0..<100).map { "small \($0)" }
        for name in names { try Data(name.utf8).write(to: source.appending(path: name)) }
        let request = { (names: [String]) in
            let options = SessionOptions(stallTimeout: .seconds(3_600))
            return isUpload
                ? try SessionRequest.upload(names.map { FilePath(source.appending(path: $0).path) }, to: "real", options: options)
                : try .download(names.map { try RemotePath($0) }, from: "real", to: FilePath(target.path), options: options)
        }
        let large = try await queue.enqueue(try request(["large"]))
        try await queue.start()
        for await _ in path.stalls { break }
        let small = try await queue.enqueue(try request(names))
        #expect(try await small.value.statistics.filesDone == names.count)
        #expect(try await large.status.state == .running && relay.accepted == 2)
        path.release()
        #expect(try await large.value.state == .completed)
        #expect(try Data(contentsOf: target.appending(path: "large")) == content)
        for name in names { #expect(try Data(contentsOf: target.appending(path: name)) == Data(name.utf8)) }
        await queue.shutdown()
        relay.stop()
        await folder.close()
    }
}
