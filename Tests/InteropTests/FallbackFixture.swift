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

/// An account that prefers a tus server, and has an SFTP server to fall back on.
final class FallbackFixture: Sendable {
    /// What became of a file's first attempt at the SFTP server.
    struct Arrival: Sendable {
        let time: Date
        let checkpoint: Checkpoint?
        /// How many bytes of it the tus server had then.
        let leftBehind: Int64
    }

    let workshop: Workshop
    let clock = FallbackClock()
    let tusAddress: String
    let account: Account
    let queue: TransferQueue
    let log = RecordedLog()
    /// How many bytes each discarded checkpoint vouched for.
    let discards: AsyncStream<Int64>
    private let arrivals = Locked<[String: Arrival]>([:])
    private let failures = Locked<[String: Date]>([:])
    /// What the SFTP server has.
    let files: URL

    /// One for all: it ends with the tests.
    private static let ssh = Task { try await SSHServerProcess.start() }

    /// - Parameters:
    ///   - address: Of the tus server, or of what is before it.
    ///   - server: The tus server itself.
    ///   - rules: Made of the addresses of both, the tus server's first.
    init(
        _ workshop: Workshop, at address: String, server: TUSLoopbackServer, rules: ([String]) -> [EndpointRule] = { _ in [] }
    ) async throws {
        self.workshop = workshop
        tusAddress = address
        files = workshop.folder.appending(path: "sftp")
        try FileManager.default.createDirectory(at: files, withIntermediateDirectories: true)
        let ssh = try await Self.ssh.value
        let settings = ["identity": ssh.userKey, "agent": "none", "knownHosts": try ssh.knownHosts()]
        let endpoints: [Endpoint] = [
            .tus(address, options: TUSOptions(chunkSize: 500_000)),
            Endpoint(transport: .sftp, address: "sftp://\(ssh.user)@127.0.0.1:\(ssh.port)\(files.path)/", settings: settings),
        ]
        account = Account("real", endpoints: endpoints, rules: rules(endpoints.map(\.address)))
        let (discards, didDiscard) = AsyncStream.makeStream(of: Int64.self)
        self.discards = discards
        let sftp = FallbackTransport(
            base: SFTPTransport(),
            willBegin: { [clock, arrivals] attempt in
                let name = attempt.remotePath.description
                let leftBehind = server.statistics.uploads.first { $0.filename == name }?.offset ?? 0
                arrivals.withLock {
                    $0[name] = $0[name] ?? Arrival(time: clock.date, checkpoint: attempt.checkpoint, leftBehind: leftBehind)
                }
            })
        let tus = FallbackTransport(
            base: TUSTransport(),
            didFail: { [clock, failures] attempt in
                let name = attempt.remotePath.description
                failures.withLock { $0[name] = $0[name] ?? clock.date }
            },
            didDiscard: { didDiscard.yield($0.confirmed) })
        var configuration = QueueConfiguration()
        configuration.logger = log.logger
        configuration.randomFraction = { 1 }
        configuration.clock = clock.engineClock
        queue = try await TransferQueue(
            storage: .folder(FilePath(workshop.folder.appending(path: "store").path)), transports: [tus, sftp], configuration: configuration
        )
        try await queue.save(account)
    }

    /// Enqueues files of these names and sizes.
    func enqueue(_ files: [(name: String, size: Int)]) async throws -> TransferSession {
        // What hangs is found by moving time on, and nothing else may seem to hang by that.
        let options = SessionOptions(
            retry: RetryPolicy(maximumAttempts: 1_000), stallTimeout: Self.stallTimeout, responseTimeout: Self.stallTimeout)
        return try await queue.enqueue(
            .upload(files.map { try workshop.file($0.name, size: $0.size) }, to: account.name, options: options))
    }

    static let stallTimeout = Duration.seconds(200)

    /// Goes through the events until the session ends, and moves time on to each next attempt.
    func finish(_ session: TransferSession, _ events: QueueEvents) async -> [QueueEvent] {
        var seen: [QueueEvent] = []
        for await event in events {
            seen.append(event)
            if case .attemptFailed(_, _, let retryAt) = event.kind { clock.jump(to: retryAt) }
            if case .completed(session.id) = event.kind { break }
            if case .failed(session.id, _) = event.kind { break }
        }
        return seen
    }

    /// What is known of a file's first attempt at the SFTP server; nil if there was none.
    func arrival(of name: String) -> Arrival? { arrivals.withLock { $0[name] } }

    /// When an attempt of a file failed first at the tus server.
    func firstFailure(of name: String) -> Date? { failures.withLock { $0[name] } }

    func isAtPreferred(_ item: ItemStatus) -> Bool { item.remoteURL?.hasPrefix(tusAddress) == true }

    /// Checks that each file is complete and intact where the queue says that it is.
    func checkContent(of session: TransferSession, at server: TUSLoopbackServer) async throws {
        for item in try await queue.items(of: session.id) {
            #expect(item.state == .completed)
            let name = item.destination.description
            let stored =
                isAtPreferred(item) ? try #require(server.storedFiles(named: name).last) : FilePath(files.appending(path: name).path)
            #expect(try workshop.content(stored) == workshop.content(item.source), "\(name)")
        }
    }
}
