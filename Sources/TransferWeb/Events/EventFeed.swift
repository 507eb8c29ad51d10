import Foundation
import TransferKit

/// The recent events of the queue, for any number of clients.
///
/// All clients share one subscription to new events, so the process that owns the queue sends each new event only once. Each client reads at its own
/// pace from a bounded list. A client that is too slow for this list gets the missed events from the queue's change log.
actor EventFeed {
    /// An event for clients. The feed numbers all events, because a progress event has the revision of the preceding stored event.
    struct NumberedEvent: Sendable {
        /// The position in this feed, which grows with each event.
        let number: Int
        let event: QueueEvent
    }

    /// The events after a client's position.
    struct Batch: Sendable {
        var events: [NumberedEvent] = []
        /// The position for the next batch.
        var position: Int
        /// Whether the process that owns the queue responds.
        var isReachable: Bool

        var hasOnlyProgress: Bool { events.allSatisfy(\.event.isProgress) }
    }

    /// The last received event, and the current database of the queue. After a restore from a backup, the queue has another database.
    struct End: Sendable {
        /// The revision of the last event.
        let revision: UInt64
        /// The position after the last event.
        let position: Int
        /// The position after the events of earlier databases. A revision that a client received before this position is invalid.
        let databasePosition: Int
    }

    private let queue: any ControllableQueue
    private let limit: Int
    private static let retryDelay = Duration.milliseconds(500)
    private let didReceive: @Sendable (QueueEvent) async -> Void

    /// The events except progress, oldest first.
    private var stored: [NumberedEvent] = []
    private var progress: [ProgressSubject: NumberedEvent] = [:]
    /// The position after all received events.
    private(set) var lastNumber = 0
    /// The maximum number of earlier events, from before the start of the server, that the feed loads.
    private static let historyLimit: UInt64 = 100
    /// The revision of the last received event; nil before the first contact with the queue.
    private var revision: UInt64?
    /// The revision at the first contact with the queue; 0 after a change of the database. The events up to this revision are from before the
    /// start of the server.
    private var startRevision: UInt64 = 0
    /// The revision after which ``stored`` contains every received event.
    private var firstRevision: UInt64 = 0
    /// The position after which ``stored`` contains every received event except progress.
    private var firstNumber = 0
    /// The position after the events of earlier databases, and after the gap that replaces these events. The change log does not contain
    /// these events.
    private var databaseNumber = 0
    /// Whether the process that owns the queue responds.
    private(set) var isReachable = false
    private var subscribers: [Int: AsyncStream<Void>.Continuation] = [:]
    private var nextSubscriber = 0

    /// - Parameters:
    ///   - limit: The minimum number of recent stored events that the feed keeps, excluding progress. The feed keeps up to twice as many.
    ///   - didReceive: Called for each event after the start of the server, before clients receive it.
    init(
        of queue: any ControllableQueue, limit: Int, didReceive: @escaping @Sendable (QueueEvent) async -> Void
    ) {
        self.queue = queue
        self.limit = limit
        self.didReceive = didReceive
    }

    /// Receives events until the task is cancelled. Reconnects after the owner of the queue exits.
    func run() async {
        while !Task.isCancelled {
            do {
                let current = try await queue.status().revision
                if let known = revision, max(known, startRevision) > current {
                    // The queue has another database, for example from a backup. Every later event is new, whatever its revision.
                    startRevision = 0
                    let gap = QueueEvent.gap(upTo: current)
                    await didReceive(gap)
                    replaceDatabase(with: gap)
                }
                if revision == nil {
                    startRevision = current
                    firstRevision = current - min(current, Self.historyLimit)
                }
                let start = min(revision ?? firstRevision, current)
                revision = start
                setReachable(true)
                for try await event in queue.eventStream(since: start) { await receive(event) }
            } catch {}
            setReachable(false)
            try? await Task.sleep(for: Self.retryDelay)
        }
    }

    private func receive(_ event: QueueEvent) async {
        if event.isProgress || event.revision > startRevision {
            await didReceive(event)
        } else if case .gap = event.kind {
            // The change log no longer has all events from before the start of the server.
            (revision, firstRevision) = (event.revision, event.revision)
            return wake()
        }
        insert(event)
    }

    private func insert(_ event: QueueEvent) {
        lastNumber += 1
        let numbered = NumberedEvent(number: lastNumber, event: event)
        if let subject = event.kind.progressSubject {
            // Newer progress replaces older progress. Without a limit, the progress of sessions that no longer run would accumulate.
            if progress.count >= 1_000, progress[subject] == nil { progress.removeAll() }
            progress[subject] = numbered
        } else {
            stored.append(numbered)
            revision = event.revision
            if stored.count >= limit * 2 {
                let dropped = stored[stored.count - limit - 1]
                (firstRevision, firstNumber) = (dropped.event.revision, dropped.number)
                stored.removeFirst(stored.count - limit)
            }
        }
        wake()
    }

    /// Drops the events of the previous database. A client that has not received them gets the gap instead.
    private func replaceDatabase(with gap: QueueEvent) {
        (stored, progress) = ([], [:])
        // The gap stands for all events before it, so a client at any position needs only the gap and the later events.
        (firstRevision, firstNumber) = (gap.revision, 0)
        insert(gap)
        databaseNumber = lastNumber
    }

    private func setReachable(_ value: Bool) {
        guard isReachable != value else { return }
        isReachable = value
        wake()
    }

    /// Wakes the event streams of all clients, for example to send a heartbeat.
    func wake() {
        for subscriber in subscribers.values { subscriber.yield() }
    }

    /// Returns the signals for one client: the first immediately, and another after each call of ``wake()``, for example for a new event.
    /// Several calls can cause one signal.
    func signals() -> AsyncStream<Void> {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = nextSubscriber
        nextSubscriber += 1
        subscribers[number] = continuation
        continuation.onTermination = { [weak self] _ in Task { [weak self] in await self?.remove(number) } }
        // The first signal makes the event stream send its first batch immediately.
        continuation.yield()
        return signals
    }

    private func remove(_ number: Int) { subscribers[number] = nil }

    /// Returns the position in this feed for a client that has read the state at a revision; nil if the feed has not received this revision
    /// yet, or ``stored`` does not contain all events after it.
    func position(after known: UInt64) -> Int? {
        guard let revision, known <= revision else { return nil }
        guard known >= firstRevision else { return nil }
        return stored.last { $0.event.revision <= known }?.number ?? firstNumber
    }

    /// The end of this feed; nil until the feed has received the events from before the start of the server.
    var end: End? {
        guard let revision, revision >= startRevision else { return nil }
        return End(revision: revision, position: lastNumber, databasePosition: databaseNumber)
    }

    func recent(_ count: Int) -> [NumberedEvent] { Array(stored.suffix(count)) }

    /// Returns the events after a position; nil if the feed has dropped some of these events, but the change log may still contain them.
    func batch(after position: Int) -> Batch? {
        var batch = Batch(position: max(position, lastNumber), isReachable: isReachable)
        if position < firstNumber {
            guard position < databaseNumber else { return nil }
            let gap = QueueEvent.gap(upTo: firstRevision)
            batch.events = [NumberedEvent(number: firstNumber, event: gap)]
        }
        // The search starts at the end, so that it is short for a client that is up to date.
        let start = stored.lastIndex { $0.number <= position }.map { $0 + 1 } ?? 0
        batch.events += stored[start...]
        batch.events += progress.values.filter { $0.number > position }
        batch.events.sort { $0.number < $1.number }
        return batch
    }
}

private enum ProgressSubject: Hashable {
    case queue
    case session(SessionID)
    case item(SessionID, Int64)
}

extension QueueEvent.Kind {
    fileprivate var progressSubject: ProgressSubject? {
        switch self {
        case .totalProgress: .queue
        case .progress(let id, _): .session(id)
        case .itemProgress(let id, let position, _): .item(id, position)
        default: nil
        }
    }
}

extension QueueEvent {
    /// A gap, after which a client reads the current state.
    static func gap(upTo revision: UInt64) -> QueueEvent {
        QueueEvent(revision: revision, time: .now, kind: .gap(from: 0, to: revision))
    }
}
