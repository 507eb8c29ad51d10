import Foundation
import Locking
import Logging
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct PoolTests {
    private static let endpoint = Endpoint.sftp("sftp://me@peer/")
    private let clock = PoolClock()

    private func check(_ transport: SFTPTransport) async throws {
        _ = try await transport.check(Self.endpoint, credentials: NoCredentials())
    }

    private static func completingPeer() -> ScriptedPeer { ScriptedPeer { [ScriptedPeer.status($0.id, .ok)] } }

    // MARK: Number of connections

    @Test func closesIdleConnection() async throws {
        let peers = Locked<[ScriptedPeer]>([])
        let connector = TestConnector { _ in
            let peer = Self.completingPeer()
            peers.withLock { $0.append(peer) }
            return peer
        }
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        try await check(transport)
        await clock.waitForSleeper(for: clock.policy.idleTime)
        clock.advance(by: clock.policy.idleTime - .seconds(1))
        // Each use restarts the idle time.
        try await check(transport)
        #expect(connector.attempts == 1)
        await clock.waitForSleeper(for: clock.policy.idleTime)
        clock.advance(by: clock.policy.idleTime - .seconds(1))
        #expect(clock.sleepers(for: clock.policy.idleTime) == 1)
        clock.advance(by: .seconds(1))
        let first = try #require(peers.withLock { $0.first })
        while first.client.isOpen { await Task.yield() }
        try await check(transport)
        #expect(connector.attempts == 2)
        await transport.shutdown()
    }

    @Test func opensFirstConnectionAloneAndOthersGradually() async throws {
        let open = Locked<(count: Int, history: [Int])>((0, []))
        let clock = clock
        let connector = TestConnector { _ in
            open.withLock { open in
                open.count += 1
                open.history.append(open.count)
            }
            try await clock.policy.sleep(.seconds(1))
            open.withLock { $0.count -= 1 }
            return ScriptedPeer { _ in [] }
        }
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        let endpoint = Endpoint.sftp("sftp://me@peer/", options: SFTPOptions(maxConnections: 6))
        // The servers never respond, so each connection has enough waiting requests to justify another connection.
        let tasks = (0..<20).map { _ in
            Task { _ = try await transport.check(endpoint, credentials: NoCredentials()) }
        }
        for (expected, concurrent) in [(1, 1), (4, 3)] {
            while clock.sleepers(for: .seconds(1)) < concurrent { await Task.yield() }
            for _ in 0..<1_000 { await Task.yield() }
            #expect(connector.attempts == expected)
            clock.advance(by: .seconds(1))
        }
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
        await transport.shutdown()
        #expect(open.withLock { $0.history } == [1, 1, 2, 3])
    }

    @Test func pausesAfterRefusedConnection() async throws {
        let busy = ScriptedPeer { _ in [] }
        let connector = TestConnector { number in
            if number == 0 { return busy }
            throw TransferError(.transient, .serverError, "There is no room.")
        }
        var policy = clock.policy
        // The server never responds, so this limit must be longer than the test takes.
        policy.silence = .seconds(1_000_000)
        let clockReads = Locked(0)
        policy.now = { [now = policy.now] in
            clockReads.withLock { $0 += 1 }
            return now()
        }
        let transport = SFTPTransport(connector: connector, policy: policy)
        var tasks: [Task<Void, any Error>] = []
        // The third check requests another connection. After the refusal, this check and all later ones use the existing connection.
        for count in 1...20 {
            let before = clockReads.withLock { $0 }
            tasks.append(Task { try await check(transport) })
            while busy.requests.count < count { await Task.yield() }
            // The pool reads the clock twice: when the check arrives, and when the pool records the refusal.
            if count == 3 { while clockReads.withLock({ $0 }) < before + 2 { await Task.yield() } }
        }
        #expect(connector.attempts == 2)
        clock.advance(by: clock.policy.delayAfterFailure)
        tasks.append(Task { try await check(transport) })
        while connector.attempts < 3 { await Task.yield() }
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
        await transport.shutdown()
    }

    // MARK: Silent servers

    @Test func timesOutServerThatNeverStartsSFTP() async throws {
        let silent = ScriptedPeer(greeting: []) { _ in [] }
        let transport = SFTPTransport(connector: TestConnector { $0 == 0 ? silent : Self.completingPeer() }, policy: clock.policy)
        let waiting = (0..<3).map { _ in Task { try await check(transport) } }
        await clock.waitForSleeper(for: clock.policy.startTimeout)
        clock.advance(by: clock.policy.startTimeout)
        for task in waiting {
            let error = await #expect(throws: TransferError.self) { try await task.value }
            #expect(error?.failureClass == .unreachable && error?.code == .timedOut, "\(error?.description ?? "")")
        }
        #expect(!silent.client.isOpen)
        try await check(transport)
        await transport.shutdown()
    }

    @Test func connectingTimesOut() async throws {
        let clock = clock
        let connector = TestConnector { number in
            // Sleeps for longer than any limit.
            if number == 0 { try await clock.policy.sleep(.seconds(1_000_000)) }
            return Self.completingPeer()
        }
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        let waiting = Task { try await check(transport) }
        await clock.waitForSleeper(for: clock.policy.connectTimeout)
        clock.advance(by: clock.policy.connectTimeout)
        let error = await #expect(throws: TransferError.self) { try await waiting.value }
        #expect(error?.failureClass == .unreachable && error?.code == .timedOut, "\(error?.description ?? "")")
        try await check(transport)
        await transport.shutdown()
    }

    /// Suspends the server of the first connection, and starts a check that waits for its response.
    private func suspendServerDuringCheck(
        _ connector: ProcessConnector, _ transport: SFTPTransport
    ) async throws -> (server: ServerProcess, waiting: Task<Void, any Error>) {
        try await check(transport)
        let server = try #require(connector.servers.first)
        server.suspend()
        let before = server.sentBytes
        let waiting = Task { try await check(transport) }
        while server.sentBytes == before { await Task.yield() }
        return (server, waiting)
    }

    @Test func abandonsSilentConnection() async throws {
        let connector = ProcessConnector()
        var policy = clock.policy
        // Disables this limit, which is shorter than `silence` by default.
        policy.silenceAfterCancellation = .seconds(1_000_000)
        let transport = SFTPTransport(connector: connector, policy: policy)
        let (first, hanging) = try await suspendServerDuringCheck(connector, transport)
        hanging.cancel()
        await #expect(throws: CancellationError.self) { try await hanging.value }
        #expect(first.client.isOpen)

        clock.advance(by: clock.policy.silence)
        try await check(transport)
        #expect(connector.servers.count == 2 && !first.client.isOpen)
        first.kill()
        await transport.shutdown()
    }

    /// A slow request, such as a sync of a large file, may still complete.
    @Test func keepsSilentConnectionForWaitingRequest() async throws {
        let connector = ProcessConnector()
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        let (first, slow) = try await suspendServerDuringCheck(connector, transport)
        clock.advance(by: clock.policy.silence)
        try await check(transport)
        #expect(connector.servers.count == 2 && first.client.isOpen)
        first.resume()
        try await slow.value
        // No other request uses this connection, so the pool closes the connection after the response.
        while first.client.isOpen { await Task.yield() }
        try await check(transport)
        #expect(connector.servers.count == 2)
        await transport.shutdown()
    }

    @Test func keepsIdleConnectionDespiteSilence() async throws {
        let connector = TestConnector { _ in Self.completingPeer() }
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        try await check(transport)
        clock.advance(by: clock.policy.silence)
        try await check(transport)
        #expect(connector.attempts == 1)
        await transport.shutdown()
    }

    @Test func silentConnectionCostsOneAttempt() async throws {
        let connector = ProcessConnector()
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        let (first, hanging) = try await suspendServerDuringCheck(connector, transport)
        clock.advance(by: clock.policy.silenceAfterCancellation)
        hanging.cancel()
        await #expect(throws: CancellationError.self) { try await hanging.value }
        try await check(transport)
        #expect(connector.servers.count == 2 && !first.client.isOpen)
        first.kill()
        await transport.shutdown()
    }

    /// Connecting has its own time limits, so the queue must not consider the attempt stalled.
    @Test func reportsActivityWhileConnecting() async throws {
        let clock = clock
        let connector = TestConnector { _ in
            try await clock.policy.sleep(.seconds(1_000_000))
            return Self.completingPeer()
        }
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        let reports = Locked(0)
        let reporter = AttemptReporter(progress: { _, _ in }, checkpoint: { _ in }, activity: { reports.withLock { $0 += 1 } })
        let root = FilePath(FileManager.default.temporaryDirectory.path)
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: Self.endpoint,
            payload: .download(DownloadDestination(root: root, name: "never", partName: ".never.part")), remotePath: try RemotePath("a"),
            credentials: NoCredentials(), logger: Logger(label: "test"))
        let waiting = Task { try await transport.perform(attempt, reporting: reporter) }
        for count in 1...3 {
            await clock.waitForSleeper(for: clock.policy.activityInterval)
            #expect(reports.withLock { $0 } == count)
            clock.advance(by: clock.policy.activityInterval)
        }
        waiting.cancel()
        _ = await waiting.result
        await transport.shutdown()
    }

    @Test func smallFilesAvoidConnectionOfLargeFile() async throws {
        let number = Locked(0)
        let peers = Locked<[ScriptedPeer]>([])
        let connector = TestConnector { _ in
            let isFirst = number.withLock { number in
                number += 1
                return number == 1
            }
            // The first server never confirms written bytes.
            let peer = ScriptedPeer { request in
                switch request.type {
                case .write where isFirst: []
                case .open: [ScriptedPeer.handle(request.id)]
                case .lstat: [ScriptedPeer.status(request.id, .noSuchFile)]
                default: [ScriptedPeer.status(request.id, .ok)]
                }
            }
            peers.withLock { $0.append(peer) }
            return peer
        }
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        let path = FilePath(FileManager.default.temporaryDirectory.appending(path: "sftp-large-\(UUID().uuidString)").path)
        try content(1 << 20).write(to: URL(filePath: path.string))
        defer { try? FileManager.default.removeItem(atPath: path.string) }
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: Self.endpoint, source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)),
            remotePath: try RemotePath("large"), credentials: NoCredentials(), logger: Logger(label: "test"))
        let large = Task { try await transport.perform(attempt, reporting: Recorder().reporter) }
        while (peers.withLock { $0.first }?.requests ?? []).count(where: { $0.type == .write }) < 4 { await Task.yield() }
        // The first connection is busy, so this check opens another connection.
        try await check(transport)
        #expect(peers.withLock { $0.count } == 2)
        for _ in 0..<10 { try await check(transport) }
        #expect(peers.withLock { $0.first }?.requests.contains { $0.type == .realpath } == false)
        large.cancel()
        _ = await large.result
        await transport.shutdown()
    }
}
