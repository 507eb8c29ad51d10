import Foundation
import Locking
import SSHFixture
import ScriptedHTTP
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferKit
import TransportSFTP

/// An account whose preferred tus server fails in the middle of a session, so that the account's SFTP server takes over.
@Suite(.timeLimit(.minutes(10))) struct SFTPFallbackTests {
    enum Fault: CaseIterable {
        case refusesConnections
        case hangs
        case showsLoginPage
    }

    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    private static let small = (0..<49).map { (name: "small-\($0)", size: 20_000 + $0) }
    /// The files of the session: ten small files, one large file, which is sent alone, and the remaining small files.
    private static let sessionFiles = Array(small[..<10]) + [(name: "large", size: 3_000_000)] + Array(small[10...])

    @Test(arguments: Fault.allCases)
    func movesToNextEndpoint(fault: Fault) async throws {
        let server = interop.loopbackServer()
        let port = UInt16(try #require(try await server.start().port))
        let relay = try CuttingRelay(to: Int(port))
        let fixture = try await FallbackFixture(interop, at: "http://127.0.0.1:\(relay.port)/files/", server: server)
        let (queue, clock) = (fixture.queue, fixture.clock)
        // The number of hanging requests. The server has read each of these requests completely, so the client makes no more progress.
        let hanging = Locked(0)
        let (newHangs, newHangsContinuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let other = try ScriptedServer { _, _ in
            let hang = ServerStep.call {
                hanging.withLock { $0 += 1 }
                newHangsContinuation.yield()
            }
            return fault == .hangs
                ? [.read(nil), hang, .silence]
                : [.answer(200, ["Content-Type": "text/html"], body: "<html>Log in</html>")]
        }
        // The server fails during the third chunk of the large file.
        relay.cut(
            .fromClient, inAllAfter: 10 * 20_000 + 1_400_000, then: fault == .refusesConnections ? .refused : .redirected(to: other.port))
        let advancing = Task {
            var known = 0
            for await _ in newHangs where hanging.withLock({ $0 }) > known {
                repeat {
                    known = hanging.withLock { $0 }
                    // The queue checks for stalled attempts every 100 ms. After two sleeps, it has checked the attempt of every hanging
                    // request.
                    await clock.awaitSleeps(of: .milliseconds(100), times: 2)
                } while known != hanging.withLock { $0 } && !Task.isCancelled
                await clock.advanceInSteps(by: FallbackFixture.stallTimeout + .seconds(1))
            }
        }
        let events = queue.events
        let session = try await fixture.enqueue(Array(Self.sessionFiles))
        try await queue.start()
        let received = await fixture.finish(session, events)
        advancing.cancel()

        let finishedBefore = checkEvents(received, of: session, fixture).prefix(10)
        try await checkEnd(of: session, finishedBefore, fixture, server)
        // The transport logs SFTP requests without paths and, because all sessions share connections, without a session. The SFTP server opens at
        // least the 39 small files after the large file.
        let opened = fixture.log.metadata(of: "open 127.0.0.1")
        #expect(opened.count >= 39 && opened.allSatisfy { $0["status"] == "0" && $0["session"] == nil })
        let large = try #require(fixture.firstAttempt(of: "large"))
        #expect(large.checkpoint == nil, "at another endpoint, a file starts from byte 0")
        #expect(large.leftBehind >= 1_000_000, "the first endpoint keeps its bytes until the file is complete at another endpoint")
        let failure = try #require(fixture.firstFailure(of: "large"))
        // Dates are less precise than uptimes, by about a microsecond.
        let minimumDelay = fixture.account.fallbackAfter.inSeconds - 0.000_01
        #expect(large.time.timeIntervalSince(failure) >= minimumDelay, "the first endpoint has time to recover")
        let others = try (10..<49).map { try #require(fixture.firstAttempt(of: "small-\($0)")) }
        #expect(others.contains { $0.time < large.time }, "a file without bytes at the first endpoint moves without delay")
        if fault != .refusesConnections {
            relay.breakAll(then: .redirected(to: port))
            try await checkReturn(fixture, server)
            // Only the real server can remove the upload: a login page is not a valid response to DELETE.
            await checkRemoval(fixture, server)
        }
        await queue.shutdown()
        other.stop()
        relay.stop()
        await server.stop()
    }

    @Test func returnsToRestartedServer() async throws {
        let folder = FilePath(interop.folder.appending(path: "server").path)
        // The server is slow, so that the test can stop it before the session completes.
        let first = TUSLoopbackServer(folder: folder, options: LoopbackOptions(bytesPerSecond: 1_000_000))
        let url = try await first.start()
        let fixture = try await FallbackFixture(interop, at: "http://127.0.0.1:\(url.port ?? 0)/files/", server: first)
        let events = fixture.queue.events
        let stopping = fixture.queue.events
        let session = try await fixture.enqueue((0..<50).map { (name: "small-\($0)", size: 300_000 + $0) })
        let stop = Task {
            var count = 0
            for await event in stopping {
                if case .itemCompleted = event.kind { count += 1 }
                if count == 10 { break }
            }
            await first.stop()
        }
        try await fixture.queue.start()
        let received = await fixture.finish(session, events)
        await stop.value
        let restarted = TUSLoopbackServer(folder: folder, port: UInt16(url.port ?? 0))
        _ = try await restarted.start()
        let finishedBefore = checkEvents(received, of: session, fixture).prefix(10)
        try await checkEnd(of: session, finishedBefore, fixture, restarted)
        try await checkReturn(fixture, restarted)
        await fixture.queue.shutdown()
        await restarted.stop()
    }

    @Test func appliesEndpointRules() async throws {
        let server = interop.loopbackServer()
        let url = try await server.start()
        let fixture = try await FallbackFixture(interop, at: "http://127.0.0.1:\(url.port ?? 0)/files/", server: server) { addresses in
            [
                EndpointRule(direction: .upload, minimumSize: 100_000, prefer: [addresses[1]]),
                EndpointRule(direction: .download, prefer: [addresses[1], addresses[0]]),
            ]
        }
        try await fixture.queue.start()
        let session = try await fixture.enqueue([("small", 99_999), ("large", 100_000), ("larger", 3_000_000)])
        #expect(try await session.value.state == .completed)
        try await fixture.checkContent(of: session, at: server)
        let items = try await fixture.queue.items(of: session.id)
        #expect(items.map(fixture.isAtPreferred) == [true, false, false])
        #expect(server.statistics.uploads.map(\.filename) == ["small"])

        let content = Data("of the SFTP server".utf8)
        try content.write(to: fixture.files.appending(path: "wanted"))
        let target = interop.folder.appending(path: "target")
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
        let download = try await fixture.queue.enqueue(
            try .download(items: [.remote(RemotePath("wanted"))], from: "real", to: FilePath(target.path)))
        #expect(try await download.value.transport == .sftp)
        #expect(try Data(contentsOf: target.appending(path: "wanted")) == content)
        await fixture.queue.shutdown()
        await server.stop()
    }

    // MARK: Invariants

    /// - Parameter finishedBefore: The positions of the files that were complete when the server failed.
    private func checkEnd(
        of session: TransferSession, _ finishedBefore: some Collection<Int64>, _ fixture: FallbackFixture, _ server: TUSLoopbackServer
    ) async throws {
        let status = try await session.status
        #expect(status.state == .completed)
        #expect(status.statistics.filesDone == 50)
        #expect(status.transport == .sftp)
        #expect(status.endpoint == fixture.account.endpoints[1].address)
        try await fixture.checkContent(of: session, at: server)
        let logged = fixture.log.metadata(of: "An attempt failed: ")
        let preferred = fixture.account.endpoints[0].location
        #expect(logged.contains { $0["endpoint"] == preferred && $0["item"] != nil && $0["decision"] != nil }, "\(logged)")
        let moves = fixture.log.metadata(of: "A session continues at another endpoint.")
        #expect(moves.first?["from"] == preferred && moves.first?["endpoint"] == fixture.account.endpoints[1].location, "\(moves)")
        let items = try await fixture.queue.items(of: session.id)
        #expect(finishedBefore.count == 10)
        #expect(finishedBefore.allSatisfy { fixture.isAtPreferred(items[Int($0)]) }, "complete files stay on the first endpoint")
        #expect(items.contains { !fixture.isAtPreferred($0) })
    }

    /// - Returns: The positions of the files, in the order of their completion.
    private func checkEvents(_ received: [QueueEvent], of session: TransferSession, _ fixture: FallbackFixture) -> [Int64] {
        var completed: [Int64] = []
        var changes: [[String?]] = []
        for event in received {
            switch event.kind {
            case .itemCompleted(session.id, let position, _): completed.append(position)
            case .endpointChanged(session.id, let before, let after): changes.append([before, after])
            case .itemRestarted, .itemFailed, .failed, .accountBlocked: Issue.record("\(event.kind)")
            default: break
            }
        }
        #expect(completed.sorted() == Array(0..<50), "each file completes once")
        let endpoints = fixture.account.endpoints.map(\.location)
        #expect(changes.first == [endpoints[0], endpoints[1]])
        return completed
    }

    private func checkReturn(_ fixture: FallbackFixture, _ server: TUSLoopbackServer) async throws {
        fixture.clock.advance(by: .seconds(3_600))
        let events = fixture.queue.events
        let later = try await fixture.enqueue((0..<5).map { (name: "later-\($0)", size: 10_000 + $0) })
        _ = await fixture.finish(later, events)
        #expect(try await later.status.endpoint == fixture.account.endpoints[0].address)
        #expect(try await fixture.queue.items(of: later.id).allSatisfy { fixture.isAtPreferred($0) })
        try await fixture.checkContent(of: later, at: server)
    }

    /// Checks that the queue removes the unfinished upload from the tus server as soon as the server is reachable.
    private func checkRemoval(_ fixture: FallbackFixture, _ server: TUSLoopbackServer) async {
        let sleeps = fixture.clock.sleeps
        fixture.clock.advance(by: .seconds(100))
        let advancing = Task {
            // Each step is shorter than the time limit of a removal.
            for await wait in sleeps where wait >= .seconds(1) { fixture.clock.advance(by: .seconds(100)) }
        }
        for await confirmed in fixture.removals where confirmed > 0 { break }
        advancing.cancel()
        #expect(server.storedFiles(named: "large").isEmpty)
    }
}
