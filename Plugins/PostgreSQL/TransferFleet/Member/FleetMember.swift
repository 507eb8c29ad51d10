public import Foundation
public import Logging
import SystemPackage
public import TransferCore
public import TransferKit

/// Settings of a member of a fleet.
public struct FleetMemberConfiguration: Sendable {
    /// The member's name, unique in the fleet. Default: the host's name.
    public var name: String
    /// The maximum number of sessions that the member runs at the same time, at least 1.
    public var slots: Int
    /// The member's labels; see ``FleetPlace/label(_:)``.
    public var labels: [String]
    /// The logger of the member and of its queue.
    public var logger: Logger

    /// Creates a configuration.
    public init(
        name: String = ProcessInfo.processInfo.hostName, slots: Int = 1, labels: [String] = [],
        logger: Logger = Logger(label: "transferkit")
    ) {
        self.name = name
        self.slots = max(1, slots)
        self.labels = labels
        self.logger = logger
    }
}

/// A host that takes sessions from a fleet and runs them in its own queue.
///
/// The member renews its leases every 3 s. If the member can't reach the database, it stops its sessions 5 s before their leases end, so that no
/// other member sends the same file at the same time. The member measures the duration of its leases with its own clock, which also runs while
/// the host is suspended.
public actor FleetMember {
    enum Phase {
        case running
        /// The queue interrupts the session. Afterwards, the member gives the session back, unless the lease is lost.
        case stopping
    }

    struct TakenSession {
        var lease: LeaseReference
        var account: String
        /// The task that adds the session to the member's queue; nil until this task starts.
        var adoption: Task<Void, any Error>?
        var isAdopted = false
        var phase = Phase.running
        /// The time by which the member must have stopped the session, according to the member's own clock.
        var deadline: ContinuousClock.Instant
        /// Whether the lease is lost or the session's end is reported, so that the member must not write about the session to the fleet.
        var isLost = false
        var isPaused = false
        /// Whether the queue is performing a request from the fleet.
        var isChanging = false
        /// The number of calls of `run` that the queue has performed since the member took the session; nil if the queue must still perform
        /// an earlier call.
        var runRequests: Int64?
    }

    enum Outcome {
        case completed
        case failed(TransferError)
    }

    static let heartbeatInterval = Duration.seconds(3)

    let store: FleetStore
    /// A separate connection for heartbeats, so that leases are renewed while a transaction waits for the fleet's lock.
    let heartbeats: FleetStore
    package nonisolated let queue: TransferQueue
    let recorder: ProgressRecorder
    let description: FleetMemberDescription
    let transports: Set<TransportID>
    let logger: Logger
    let listener: PostgresConnection
    private let wakeUps: AsyncStream<Void>
    let wakeUp: AsyncStream<Void>.Continuation
    let heartbeatRequests: AsyncStream<Void>
    let heartbeatRequest: AsyncStream<Void>.Continuation
    /// The sessions that the member has taken, until they have left its queue.
    var taken: [SessionID: TakenSession] = [:]
    /// The outcomes of ended sessions that the member has not reported to the fleet yet.
    var outcomes: [SessionID: Outcome] = [:]
    /// The accounts as the member last saved them in its queue.
    var accounts: [String: Account] = [:]
    /// The fleet counts the requests to try an account's endpoints again. For each account of a session that this process has taken, the count that
    /// the member has already handled.
    var retries: [String: Int64] = [:]
    var rates = RateShares()
    /// The share of the fleet's limit that the queue has; nil if the share is unknown, and `.some(nil)` if there is no limit.
    var appliedRate: Int64??
    var isApplyingRates = false
    var removals: [SessionID: Task<Void, Never>] = [:]
    /// Sent when a session has left the member's queue.
    nonisolated let sessionsLeft = ChangeSignal()
    private var isStopping = false
    /// Whether the member is leaving the fleet. If so, the member does not retry a failed removal of a session from its queue.
    var isLeaving = false
    private var eviction: QueueError?

    /// Opens a member's queue. The member takes no session before ``run()``.
    ///
    /// - Parameters:
    ///   - url: The URL of the fleet's database: `postgresql://user@host/database`.
    ///   - folder: The storage folder of the member's own queue. ``run()`` removes the sessions that an earlier process left in the folder,
    ///     because the fleet has them.
    ///   - transports: The transports that sessions can use.
    ///   - credentials: Reads the secrets that endpoints refer to. Each member needs the secrets of the accounts that it uses.
    ///   - configuration: The member's settings.
    /// - Throws: ``/TransferKit/QueueError``.
    public init(
        of url: String, folder: some LocalPathConvertible, transports: [any Transport],
        credentials: any CredentialProvider = ReferencedCredentials(), configuration: FleetMemberConfiguration = FleetMemberConfiguration()
    ) async throws {
        let url = try PostgresURL(url)
        let store = FleetStore(url)
        let recorder = ProgressRecorder(FleetStore(url), member: configuration.name)
        var settings = QueueConfiguration(maxConcurrentSessions: configuration.slots, logger: configuration.logger)
        settings.maxConcurrentSessionsOverride = configuration.slots
        settings.progressObserver = { try await recorder.record($0, $1) }
        let queue = try await TransferQueue(
            storage: .folder(folder), transports: transports, credentials: credentials, configuration: settings)
        let identity: String
        do {
            identity = try await MemberIdentity.read(in: folder.filePath)
        } catch {
            await queue.shutdown()
            throw error
        }
        self.transports = Set(transports.map(\.id))
        (self.store, self.recorder, self.queue, logger) = (store, recorder, queue, configuration.logger)
        heartbeats = FleetStore(url)
        listener = PostgresConnection(url, check: FleetSchema.listen)
        (wakeUps, wakeUp) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (heartbeatRequests, heartbeatRequest) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        description = FleetMemberDescription(
            name: configuration.name, identity: identity, slots: configuration.slots, labels: configuration.labels,
            process: ProcessInfo.processInfo.processIdentifier)
    }

    /// Joins the fleet, and runs sessions until ``stop()`` is called or the task is cancelled. Then interrupts the sessions, gives them
    /// back, and shuts the queue down.
    ///
    /// - Throws: ``/TransferKit/QueueError``: if the member can't join, or if the fleet has removed it.
    public func run() async throws {
        try await run(whenJoined: {}, shutDown: { [queue] in await queue.shutdown() })
    }

    /// Like ``run()``, with a notification after joining, and with a custom shutdown.
    ///
    /// - Parameters:
    ///   - didJoin: Called when the member has joined the fleet.
    ///   - shutDown: Shuts the queue down, and also, for example, the server through which other processes control the queue.
    package func run(whenJoined didJoin: @escaping @Sendable () -> Void, shutDown: () async -> Void) async throws {
        let task = Task { try await self.work(didJoin) }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            wakeUp.finish()
        }
        await shutDown()
        await listener.close()
        await recorder.close()
        await heartbeats.connection.close()
        await store.connection.close()
        try result.get()
    }

    /// Ends ``run()``, which first interrupts the member's sessions and gives them back.
    public func stop() {
        isStopping = true
        wakeUp.finish()
    }

    /// Makes the member report ended sessions, take new ones, and send a heartbeat.
    func wake() {
        wakeUp.yield()
        heartbeatRequest.yield()
    }

    /// Ends ``run()`` with an error, because the fleet has removed this member.
    func end(with error: QueueError) {
        eviction = error
        wakeUp.finish()
    }

    private func work(_ didJoin: @Sendable () -> Void) async throws {
        guard try await join() else { return }
        // Remove the sessions that an earlier process of this member left, including drafts: that process may have ended before its queue had added
        // all items of a session. The fleet ended the leases of these sessions when the member joined.
        for id in await queue.sessionIDs(beginningWith: "", limit: .max) { try await queue.withdraw(id) }
        for status in await queue.accounts() where status.blockingError == nil { accounts[status.account.name] = status.account }
        let events = queue.events
        try await queue.start()
        logger.notice("Joined the fleet.", metadata: ["member": "\(description.name)"])
        didJoin()
        let helpers = [
            Task { await self.watchQueue(events) }, Task { await self.watchNotifications() }, Task { await self.watchDeadlines() },
            Task { await self.sendHeartbeats() }, Task { await self.tick() },
        ]
        defer { for helper in helpers { helper.cancel() } }
        wake()
        do {
            for await _ in wakeUps { try await step() }
            if let eviction { throw eviction }
        } catch {
            await loseAll()
            throw error
        }
        await giveAllBack()
    }

    /// Joins the fleet. Retries while the database can't be reached, because the hosts of a fleet can start in any order.
    ///
    /// - Returns: False if the member must stop.
    private func join() async throws -> Bool {
        var delay = Duration.milliseconds(500)
        while !isStopping {
            do {
                try await store.join(description)
                return true
            } catch let error as QueueError where error.code == .storageUnavailable {
                logger.warning("\(error)")
                try await Task.sleep(for: delay)
                delay = min(delay * 2, .seconds(8))
            }
        }
        return false
    }

    /// Reports the ends of sessions, and takes sessions for free slots.
    private func step() async throws {
        for (id, outcome) in outcomes {
            do {
                try await report(outcome, of: id)
            } catch {
                // For example, the database can't be reached. The session keeps its lease, and the next round retries the report.
                logger.warning("Cannot report the end of a session. \(error)", metadata: ["session": "\(id)"])
            }
        }
        guard !isStopping, taken.count < description.slots else { return }
        do {
            let began = ContinuousClock.now
            let leases = try await store.take(for: description, limit: description.slots - taken.count)
            // Heartbeats renew all leases while the sessions are added one after another.
            let new = leases.filter { register($0, takenAt: began) }
            if !leases.isEmpty { heartbeatRequest.yield() }
            for lease in leases where !new.contains(where: { $0.id == lease.id }) { await returnEarly(lease) }
            if let lease = leases.first { await apply(lease.rates) }
            for lease in new { await adopt(lease) }
        } catch let error as QueueError where error.code == .evicted {
            throw error
        } catch {
            logger.warning("\(error)")
        }
    }

    // MARK: Sources of changes

    private func tick() async {
        while (try? await Task.sleep(for: Self.heartbeatInterval)) != nil { wake() }
    }

    private func watchQueue(_ events: QueueEvents) async {
        for await event in events {
            switch event.kind {
            case .completed(let id): outcomes[id] = .completed
            case .failed(let id, let error): outcomes[id] = .failed(error)
            case .accountBlocked(let account, let error): await refuse(account, error)
            default: continue
            }
            wake()
        }
    }
}
