import Foundation
import Locking
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct SFTPBreakingPathTests {
    private let clock = AdvanceableClock()

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
        let queue = try await interop.openQueue(account, transports: [SFTPTransport()], clock: clock.engineClock)
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
    /// connection. Over the next connection, the upload resumes after these bytes, unless the connection broke while the server synced the
    /// part file: if that sync failed, the acknowledged bytes may be lost.
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

    /// How long each connection lasts at 4 MiB/s: ten or two seconds.
    enum Lifetime: CaseIterable {
        case tenSeconds, twoSeconds

        fileprivate var bytes: Int { self == .tenSeconds ? 40 << 20 : 8 << 20 }
        fileprivate var size: Int { self == .tenSeconds ? 100 << 20 : 40 << 20 }
        /// The rate limit in bytes per second. Only a short lifetime needs it: on a fast path, the unacknowledged bytes would be a large
        /// share of all bytes.
        fileprivate var rate: Int64? { self == .tenSeconds ? nil : 4 << 20 }
    }

    /// Over a path that breaks, the transport sends at most a tenth of the bytes again. If the connection of an upload breaks while the server
    /// syncs the part file, the next attempt has no acknowledged position, and may send all bytes of that connection again. This is rare, and
    /// impossible without syncs.
    ///
    /// - Parameter syncs: Whether the endpoint requests syncs of uploaded files.
    @Test(arguments: [(true, true), (true, false), (false, true)], Lifetime.allCases)
    func breakingPathRepeatsAtMostTenth(_ kind: (isUpload: Bool, syncs: Bool), lifetime: Lifetime) async throws {
        let (isUpload, syncs) = kind
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let direction: RawServer.Direction = isUpload ? .fromClient : .fromServer
        let passed = Locked(0)
        let relay = try RawServer.relay(
            to: folder.server.port, limit: isUpload ? nil : lifetime.bytes, clientLimit: isUpload ? lifetime.bytes : nil,
            passes: { way, count in
                if way == direction { passed.withLock { $0 += count } }
                return true
            })
        let account = Account("real", endpoints: [try folder.endpoint(port: relay.port, ["sync": "\(syncs)"])])
        let (source, target) = isUpload ? (folder.local, folder.files) : (folder.files, folder.local)
        let content = Data.nonRepeating(lifetime.size)
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
        if let rate = lifetime.rate { try await queue.setRateLimit(rate) }
        let id = try await queue.enqueue(request).id
        try await queue.start()
        #expect(try await queue.session(id).value.state == .completed)
        let (bytes, broken) = (passed.withLock { $0 }, brokenSyncs.withLock { $0 })
        #expect(relay.accepted > (lifetime.size - 1) / lifetime.bytes, "the connections broke")
        #expect(broken <= 1, "\(broken) attempts without an acknowledged position")
        print("\(lifetime) \(kind): \(bytes) of \(lifetime.size) bytes over \(relay.accepted) connections, \(broken) broken syncs")
        #expect(bytes <= lifetime.size * 11 / 10 + broken * lifetime.bytes, "\(bytes) bytes over \(relay.accepted) connections")
        #expect(try Data(contentsOf: target.appending(path: "reel")) == content)
        await queue.shutdown()
        relay.stop()
        await folder.close()
    }

    /// The first connection breaks after some content, and all later ones before any content. The error of the failed session names the part file.
    @Test func failedSessionNamesItsPartFile() async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let relay = Locked<RawServer?>(nil)
        let state = Locked((connections: 0, passed: 0))
        let started = try RawServer.relay(
            to: folder.server.port,
            admits: { _ in
                state.withLock { $0 = ($0.connections + 1, 0) }
                return true
            },
            passes: { way, count in
                guard way == .fromClient else { return true }
                let isCut = state.withLock { state in
                    state.passed += count
                    return state.passed > (state.connections == 1 ? 6 << 20 : 16 << 10)
                }
                if isCut { relay.withLock { $0 }?.cut() }
                return !isCut
            })
        relay.withLock { $0 = started }
        try Data.nonRepeating(16 << 20).write(to: folder.local.appending(path: "reel"))
        let account = Account("real", endpoints: [try folder.endpoint(port: started.port)])
        let queue = try await interop.openQueue(account, transports: [SFTPTransport()], clock: clock.engineClock)
        let failures = queue.events
        let advancing = Task { [clock] in
            for await event in failures {
                if case .attemptFailed = event.kind { clock.advance(by: .seconds(3_600)) }
            }
        }
        let session = try await queue.enqueue(
            .upload(
                [FilePath(folder.local.appending(path: "reel").path)], to: "real",
                options: SessionOptions(retry: RetryPolicy(maximumAttempts: 3))))
        try await queue.start()
        await queue.waitUntilIdle()
        let status = try await session.status
        #expect(status.state == .failed)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.files.path)
        #expect(names.count == 1 && names[0].hasPrefix(".tq-"), "\(names)")
        let error = try #require(status.error)
        #expect(names.allSatisfy { error.cause?.contains($0) == true }, "\(error)")
        await queue.shutdown()
        advancing.cancel()
        started.stop()
        relay.withLock { $0 = nil }
        await folder.close()
    }
}
