import Locking
import Testing
import TransferCore
import TransportSFTP

/// The connections that files share.
@Suite(.timeLimit(.minutes(10)))
struct PoolTests {
    private static let endpoint = Endpoint.sftp("sftp://me@peer/")
    private let clock = PoolClock()

    private func check(_ transport: SFTPTransport) async throws {
        _ = try await transport.check(Self.endpoint, credentials: NoCredentials())
    }

    /// A server that answers everything.
    private static func willing() -> ScriptedPeer { ScriptedPeer { [ScriptedPeer.status($0.id, .ok)] } }

    // MARK: Servers that hang

    @Test func aServerThatNeverBeginsIsGivenUp() async throws {
        let mute = ScriptedPeer(greeting: []) { _ in [] }
        let transport = SFTPTransport(connector: TestConnector { $0 == 0 ? mute : Self.willing() }, policy: clock.policy)
        let waiting = (0..<3).map { _ in Task { try await check(transport) } }
        await clock.waitForSleeper(for: clock.policy.beginTime)
        clock.advance(by: clock.policy.beginTime)
        for task in waiting {
            let error = await #expect(throws: TransferError.self) { try await task.value }
            #expect(error?.failureClass == .unreachable && error?.code == .timedOut, "\(error?.description ?? "")")
        }
        #expect(!mute.client.isOpen)
        // Whoever comes next has another one made.
        try await check(transport)
        await transport.shutdown()
    }

    @Test func aConnectionThatIsNeverMadeIsGivenUp() async throws {
        let clock = clock
        let connector = TestConnector { number in
            // Longer than any limit.
            if number == 0 { try await clock.policy.sleep(.seconds(1_000_000)) }
            return Self.willing()
        }
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        let waiting = Task { try await check(transport) }
        await clock.waitForSleeper(for: clock.policy.connectTime)
        clock.advance(by: clock.policy.connectTime)
        let error = await #expect(throws: TransferError.self) { try await waiting.value }
        #expect(error?.failureClass == .unreachable && error?.code == .timedOut, "\(error?.description ?? "")")
        try await check(transport)
        await transport.shutdown()
    }

    /// The SSH server still lives, and tells so; attempts over the connection are ended one after the other as they don't move.
    @Test func aServerThatHangsIsNotAskedAgain() async throws {
        let connector = ProcessConnector()
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        try await check(transport)
        let first = try #require(connector.servers.first)
        first.suspend()
        let before = first.sentBytes
        let hanging = Task { try await check(transport) }
        while first.sentBytes == before { await Task.yield() }
        hanging.cancel()
        await #expect(throws: CancellationError.self) { try await hanging.value }
        #expect(first.client.isOpen)

        clock.advance(by: clock.policy.silence)
        try await check(transport)
        #expect(connector.servers.count == 2 && !first.client.isOpen)
        first.kill()
        await transport.shutdown()
    }

    @Test func aServerThatIsAskedNothingMayBeSilent() async throws {
        let connector = TestConnector { _ in Self.willing() }
        let transport = SFTPTransport(connector: connector, policy: clock.policy)
        try await check(transport)
        clock.advance(by: clock.policy.silence)
        try await check(transport)
        #expect(connector.attempts == 1)
        await transport.shutdown()
    }
}
