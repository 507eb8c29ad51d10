import Foundation
import Locking
import Logging
import SSHFixture
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferKit
import TransportSFTP
import TransportTUS

/// A queue with an account that prefers a tus server, and falls back to an SFTP server.
final class FallbackFixture: Sendable {
    /// A file's first attempt at the SFTP server.
    struct FirstAttempt: Sendable {
        let time: Date
        let checkpoint: Checkpoint?
        /// The number of the file's bytes on the tus server when this attempt began.
        let leftBehind: Int64
    }

    let interop: InteropFixture
    let clock = AdvanceableClock()
    let tusAddress: String
    let account: Account
    let queue: TransferQueue
    let log = RecordedLog()
    /// Yields the number of confirmed bytes of each unfinished upload that the queue removes from a server.
    let removals: AsyncStream<Int64>
    private let firstAttempts = Locked<[String: FirstAttempt]>([:])
    private let failures = Locked<[String: Date]>([:])
    let files: URL

    /// The SSH server that all tests share. It exits with the test process.
    private static let ssh = Task { try await SSHServerProcess.start() }

    /// - Parameters:
    ///   - address: The address of the tus server, or of the relay in front of it.
    ///   - server: The tus server itself.
    ///   - rules: Returns the account's endpoint rules for the addresses of the tus server and the SFTP server, in this order.
    init(
        _ interop: InteropFixture, at address: String, server: TUSLoopbackServer, rules: ([String]) -> [EndpointRule] = { _ in [] }
    ) async throws {
        self.interop = interop
        tusAddress = address
        files = interop.folder.appending(path: "sftp")
        try FileManager.default.createDirectory(at: files, withIntermediateDirectories: true)
        let ssh = try await Self.ssh.value
        let settings = ["identity": ssh.userKey, "agent": "none", "knownHosts": try ssh.knownHosts()]
        let endpoints: [Endpoint] = [
            .tus(address, options: TUSOptions(chunkSize: 500_000)),
            Endpoint(transport: .sftp, address: "sftp://\(ssh.user)@127.0.0.1:\(ssh.port)\(files.path)/", settings: settings),
        ]
        account = Account("real", endpoints: endpoints, rules: rules(endpoints.map(\.address)))
        let (removals, didRemove) = AsyncStream.makeStream(of: Int64.self)
        self.removals = removals
        let sftp = ObservedTransport(
            base: SFTPTransport(),
            willBegin: { [clock, firstAttempts] attempt in
                let name = attempt.remotePath.description
                let leftBehind = server.statistics.uploads.first { $0.filename == name }?.offset ?? 0
                firstAttempts.withLock {
                    $0[name] = $0[name] ?? FirstAttempt(time: clock.date, checkpoint: attempt.checkpoint, leftBehind: leftBehind)
                }
            })
        let tus = ObservedTransport(
            base: TUSTransport(),
            didFail: { [clock, failures] attempt in
                let name = attempt.remotePath.description
                failures.withLock { $0[name] = $0[name] ?? clock.date }
            },
            didRemove: { didRemove.yield($0.confirmed) })
        var configuration = QueueConfiguration()
        configuration.logger = log.logger
        configuration.randomFraction = { 1 }
        configuration.clock = clock.engineClock
        queue = try await TransferQueue(
            storage: .folder(FilePath(interop.folder.appending(path: "store").path)), transports: [tus, sftp], configuration: configuration
        )
        try await queue.save(account)
    }

    func enqueue(_ files: [(name: String, size: Int)]) async throws -> TransferSession {
        // Tests advance the clock to trigger stall timeouts. The timeouts are long, so that healthy transfers do not also time out.
        let options = SessionOptions(
            retry: RetryPolicy(maximumAttempts: 1_000), stallTimeout: Self.stallTimeout, responseTimeout: Self.stallTimeout)
        return try await queue.enqueue(
            .upload(files.map { try interop.file($0.name, size: $0.size) }, to: account.name, options: options))
    }

    static let stallTimeout = Duration.seconds(200)

    /// Reads events until the session ends. After each failed attempt, advances the clock to the time of the retry.
    func finish(_ session: TransferSession, _ events: QueueEvents) async -> [QueueEvent] {
        var seen: [QueueEvent] = []
        for await event in events {
            seen.append(event)
            if case .attemptFailed(_, _, let retryAt) = event.kind { clock.advance(to: retryAt) }
            if case .completed(session.id) = event.kind { break }
            if case .failed(session.id, _) = event.kind { break }
        }
        return seen
    }

    func firstAttempt(of name: String) -> FirstAttempt? { firstAttempts.withLock { $0[name] } }

    func firstFailure(of name: String) -> Date? { failures.withLock { $0[name] } }

    func isAtPreferred(_ item: ItemStatus) -> Bool { item.remoteURL?.hasPrefix(tusAddress) == true }

    /// Checks that each file is complete and intact on the server that the queue reports for it.
    func checkContent(of session: TransferSession, at server: TUSLoopbackServer) async throws {
        for item in try await queue.items(of: session.id) {
            #expect(item.state == .completed)
            let name = item.destination.description
            let stored =
                isAtPreferred(item) ? try #require(server.storedFiles(named: name).last) : FilePath(files.appending(path: name).path)
            #expect(try interop.content(stored) == interop.content(item.source), "\(name)")
        }
    }
}
