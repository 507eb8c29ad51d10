import Foundation
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// A stored session that tests run without a scheduler. The fixture stores the run's events about files, as the queue does, and keeps all
/// events.
final class RunFixture: Sendable {
    let folder: TemporaryFolder
    let memory: MemoryTransport
    let clock = TestClock()
    let store: QueueStore
    let mailbox = Mailbox()
    let account: Locked<Account>
    /// The unavailable endpoints. Each value is the time until which the endpoint's host is busy, or zero if the endpoint is unavailable
    /// for another reason.
    let unavailable = Locked<[Endpoint: Duration]>([:])
    let allowance = Locked<@Sendable (Int) -> Allowance>({ Allowance(bytes: $0) })
    let liveRun: Locked<LiveRun?> = Locked(nil)
    private let id = SessionID()
    private let options: SessionOptions
    private let transport: any Transport
    private let histories = Locked<[Int64: FileHistory]>([:])
    private let endpoints = EndpointStates()
    private let currentRun = Locked<Task<Void, Never>?>(nil)
    private let reported = Locked<[RunEvent.Content]>([])
    private let commitCount = Locked(0)
    /// Called with each event, before the fixture replies. At this time, an event about a file is not stored yet.
    let onEvent = Locked<@Sendable (RunEvent.Content) -> Void>({ _ in })
    /// Returns a closure that delays the reply to an event; nil for no delay.
    let delay = Locked<@Sendable (RunEvent.Content) -> (@Sendable () async -> Void)?>({ _ in nil })
    /// The histories of files when the last run reported its end.
    let historiesAtEnd = Locked<[Int64: FileHistory]>([:])
    private let writer: Task<Void, Never>

    /// - Parameters:
    ///   - sizes: The sizes of the session's files in bytes, by name.
    ///   - hosts: The hosts of the account's endpoints.
    ///   - transport: The transport for all endpoints; nil to use the memory transport.
    init(
        _ sizes: KeyValuePairs<String, Int>, _ direction: TransferDirection = .upload, hosts: [String] = ["a"],
        options: SessionOptions = SessionOptions(),
        configure: (inout Account) -> Void = { _ in }, memory: MemoryTransport = MemoryTransport(chunkSize: 1_000),
        transport: (any Transport)? = nil
    ) async throws {
        folder = try TemporaryFolder()
        self.memory = memory
        self.transport = transport ?? memory
        self.options = options
        var account = Account("a", endpoints: hosts.map { memory.endpoint(host: $0) })
        configure(&account)
        self.account = Locked(account)
        store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: clock.engineClock)
        var items: [ItemDraft] = []
        for (name, size) in sizes {
            if direction == .download {
                memory.provide(Data(count: size), as: name)
                items.append(
                    ItemDraft(kind: .download, source: Data(name.utf8), destination: Data(name.utf8), size: 0, isUnsized: true))
                continue
            }
            let path = try folder.file(name, size: size)
            items.append(ItemDraft(source: Data(path.string.utf8), destination: Data(name.utf8), size: Int64(size)))
        }
        let draft = SessionDraft(
            id: id, account: "a", name: "session", direction: direction, folder: direction == .download ? Data(folder.path.bytes) : nil,
            options: options, items: items)
        try await store.commit([.saveAccount(1, account), .session(1, rank: 0, draft)])
        writer = Task { [mailbox, store, reported, commitCount, onEvent, delay, histories, historiesAtEnd] in
            for await _ in mailbox.wakeUps {
                let envelopes = mailbox.take()
                var writes: [StoreWrite] = []
                for case .report(let report) in envelopes.map(\.input) {
                    reported.withLock { $0.append(report.content) }
                    onEvent.withLock { $0 }(report.content)
                    if case .ended = report.content { historiesAtEnd.withLock { $0 = histories.withLock { $0 } } }
                    if case .file(let position, let fileEvent) = report.content {
                        writes.append(.file(1, position: position, fileEvent))
                    }
                }
                var storeError: QueueError?
                do throws(QueueError) {
                    try await store.commit(writes)
                    if !writes.isEmpty { commitCount.withLock { $0 += 1 } }
                } catch {
                    storeError = error
                }
                let result: Result<InputResult, QueueError> = storeError.map { .failure($0) } ?? .success(InputResult())
                for envelope in envelopes {
                    guard case .report(let report) = envelope.input, let wait = delay.withLock({ $0 })(report.content) else {
                        envelope.reply?(result)
                        continue
                    }
                    Task {
                        await wait()
                        envelope.reply?(result)
                    }
                }
            }
        }
    }

    /// Starts a run. The task returns the run's outcome, or nil if the run's last event does not report the outcome.
    func start() async throws -> Task<RunOutcome?, any Error> {
        let storedSession = try #require(try await store.sessions([1]).first)
        let live = LiveRun(id: id, activation: 1, base: storedSession.status.statistics, options: options, at: clock.engineClock.now())
        self.liveRun.withLock { $0 = live }
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let context = RunContext(
            key: 1, id: id, run: 1,
            currentEndpoints: { [account, unavailable] in
                let (account, unavailable) = (account.withLock { $0 }, unavailable.withLock { $0 })
                return EndpointAvailability(
                    account: account, registered: account.endpoints,
                    available: account.endpoints.filter { unavailable[$0] == nil }, busyUntil: unavailable.filter { $0.value > .zero })
            },
            transports: [memory.id: transport], credentials: ReferencedCredentials(), endpoints: endpoints,
            allowance: { [allowance] in allowance.withLock { $0 }($0) }, store: store, mailbox: mailbox, clock: clock.engineClock,
            randomFraction: { 1 }, logger: logger, live: live)
        let run = Task { [histories] in
            let before = histories.withLock { $0 }
            await SessionRunner(context: context).run(before, remember: { new in histories.withLock { $0 = new } }, publish: { _ in })
        }
        currentRun.withLock { $0 = run }
        return Task { [mailbox, reported] in
            await run.value
            // The fixture handles messages in order. After this message, all earlier events are stored.
            try await mailbox.send(.tick)
            guard case .ended(let outcome) = reported.withLock({ $0.last }) else { return nil }
            return outcome
        }
    }

    /// Cancels the current run, without waiting for its end.
    func cancelRun() {
        currentRun.withLock { $0 }?.cancel()
    }

    func run() async throws -> RunOutcome? {
        try await start().value
    }

    var runEvents: [RunEvent.Content] { reported.withLock { $0 } }
    /// The number of transactions that stored events about files.
    var commits: Int { commitCount.withLock { $0 } }

    /// The names of the run's events. Omits events about chosen endpoints. The only included events about files are completions,
    /// failures and restarts.
    var eventNames: [String] {
        runEvents.compactMap { report in
            switch report {
            case .file(_, .completed): "completed"
            case .file(_, .failed): "failed"
            case .file(_, .restarted): "restarted"
            case .file, .endpoint: nil
            default: "\(report)".prefix { $0 != "(" }.description
            }
        }
    }

    func errors(of position: Int64) -> [TransferError] {
        runEvents.compactMap { if case .file(position, .failed(let error)) = $0 { error } else { nil } }
    }

    func endpoint(_ host: String) -> Endpoint { memory.endpoint(host: host) }

    func content(_ name: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: folder.path.appending(name).string))
    }

    func close() async {
        mailbox.close()
        await writer.value
        await store.close()
    }
}

extension RunOutcome {
    var hasSucceeded: Bool { if case .finished(nil, _) = self { true } else { false } }
    var isInterrupted: Bool { if case .interrupted = self { true } else { false } }
    var failure: TransferError? { if case .finished(let error, _) = self { error } else { nil } }
    var delay: Duration? { if case .backoff(let delay, _) = self { delay } else { nil } }
}
