import Foundation
import TransferCore
import TransferKit

/// A second implementation of the queue's rules, which predicts the scheduler's decisions.
///
/// The implementation is as simple as possible: it searches a list for every decision. It is slow, stores nothing, and sends no events.
struct ReferenceQueue {
    enum Mode: String {
        case stopped, running, draining, stopping
    }

    /// A run of a removed session that has not ended yet.
    struct Leftover {
        let id: SessionID
        let account: Int
        let run: UInt64
    }

    var settings: Scheduler.Settings
    var now = DualInstant.start
    /// The time of the process's first input; nil before that.
    var opening: DualInstant?
    var mode = Mode.stopped
    var drainDeadline: Duration?
    var network: NetworkCondition
    /// The number of bytes available on the disk if it is below the floor; otherwise nil.
    var scarceSpace: Int64?
    /// Whether a release of space that waiting sessions must still check is certain; nil without such a release.
    var releasedSpace: Bool?
    var limit: Int
    var accounts: [ReferenceAccount] = []
    /// The sessions in the order of the queue, followed by the drafts in the order in which they were saved.
    var sessions: [ReferenceSession] = []
    var leftovers: [Leftover] = []
    var health = ReferenceHealth()
    var orderRevision: UInt64 = 0
    /// The number of operations so far, with which `run`, `runNext` and `resume` mark their sessions.
    var marks = 0
    var accountNumbers = 0
    var sessionNumbers = 0
    var runNumbers: UInt64 = 0
    /// All runs of each session since the process began, oldest first.
    var runs: [SessionID: [UInt64]] = [:]
    /// The sessions that the last step started.
    var started: [SessionID] = []
    /// The sessions whose runs the last step asked to stop.
    var stopRequested: [SessionID] = []

    init(_ settings: Scheduler.Settings) {
        self.settings = settings
        limit = settings.maxConcurrentSessions
        network = settings.network
    }

    /// Handles an event on a copy, because a rejected command must change nothing.
    mutating func handle(_ event: ModelEvent, at now: DualInstant) throws(QueueError) -> InputResult {
        var copy = self
        copy.now = now
        if copy.opening == nil { copy.opening = now }
        let result = try copy.decide(event)
        self = copy
        return result
    }

    private mutating func decide(_ event: ModelEvent) throws(QueueError) -> InputResult {
        switch event {
        case .command(let command): return try handle(command)
        case .report(let id, let runsAgo, let content): handle(content, of: id, runsAgo: runsAgo)
        case .disk(let free): scarceSpace = free < settings.diskFloor ? free : nil
        case .tick: break
        }
        return InputResult()
    }

    func index(of id: SessionID) -> Int? {
        sessions.firstIndex { $0.id == id }
    }

    func requireIndex(of id: SessionID) throws(QueueError) -> Int {
        guard let index = index(of: id) else { throw QueueError(.noSuchSession, "") }
        return index
    }

    func account(_ number: Int) -> ReferenceAccount? {
        accounts.first { $0.number == number }
    }

    func requireAccount(_ name: String) throws(QueueError) -> Int {
        guard let index = accounts.firstIndex(where: { $0.account.name == name }) else { throw QueueError(.noSuchAccount, "") }
        return index
    }

    /// Returns the queue after the process was killed and another process opened the storage folder.
    func restarted() -> ReferenceQueue {
        var queue = ReferenceQueue(settings)
        queue.limit = limit
        queue.accounts = accounts
        // A new process numbers its runs from 1.
        for index in accounts.indices { queue.accounts[index].latestRunAtUnblocking = 0 }
        queue.accountNumbers = accountNumbers
        queue.sessionNumbers = sessionNumbers
        queue.orderRevision = orderRevision
        queue.marks = marks
        queue.sessions = sessions.map { session in
            var session = session
            session.run = nil
            session.earlierTags = session.tags
            session.isStopRequested = false
            session.hasNewItems = false
            session.runAgainMark = 0
            session.yieldedAt = nil
            session.spaceAt = nil
            session.isSpaceReleased = false
            session.retryAt = nil
            session.hasBegun = session.state == .running
            if session.state == .running {
                session.state = .waiting
                session.startPriority = .interrupted
            }
            return session
        }
        // The runs of cancelled sessions ended with the process, so the dependents of these sessions may start.
        for session in queue.sessions { queue.satisfyDependents(of: session) }
        return queue
    }
}
