public import Foundation
public import SystemPackage
public import TransferCore

/// A snapshot of a session.
public struct SessionStatus: Hashable, Sendable, Codable {
    /// The session's ID.
    public var id: SessionID
    /// The session's index in the queue, from 0; -1 for a draft, which is not in the order of the queue.
    public var index: Int
    /// The session's state.
    public var state: SessionState
    /// The current work of the session; nil unless it runs.
    public var phase: SessionPhase?
    /// The reason why the session waits; nil if it does not wait, or is about to start. A running session has the reason
    /// ``WaitReason/noSpace(_:)`` while one of its streams waits for disk space, and ``WaitReason/diskNotResponding(_:)`` while a local disk does not
    /// respond.
    public var why: WaitReason?
    /// A human-readable name.
    public var name: String
    /// Upload or download.
    public var direction: TransferDirection
    /// The account's name.
    public var account: String
    /// The address, without the query, of the session's current or last endpoint; nil before the session's first attempt.
    public var endpoint: String?
    /// The transport of the ``endpoint``; nil before the session's first attempt.
    public var transport: TransportID?
    /// Labels for grouping sessions.
    public var tags: [String]
    /// The app's context value as JSON; nil if the session has no context.
    public var context: Data?
    /// The numbers of files and bytes, the rates and the times of the session.
    public var statistics: SessionStatistics
    /// The number of attempts since the session was added, or last retried or run again. Each activation, which is the time from getting a
    /// slot to releasing it, counts as one attempt, and so does each retry within an activation.
    public var attempts: Int
    /// The error with which the session or its last failed attempt ended. Nil before the first failure, and after the session completed or
    /// was cancelled.
    public var error: TransferError?
    /// The local file of the first item that failed; nil if no item failed.
    public var failedItem: FilePath?
    /// When the session was enqueued or, if it was first a draft, when the draft was saved.
    public var createdAt: Date
    /// When the session first ran; nil before its first run, or after a repeated run was requested.
    public var startedAt: Date?
    /// When the session completed, failed or was cancelled; nil before its end.
    public var endedAt: Date?
    /// The expected end at the recent rate; nil if it is unknown, or the session does not run. For waiting sessions, see
    /// ``TransferQueue/forecast()``.
    public var expectedEnd: Date?
    /// The earliest start time; nil if the session has none, or no longer waits for this time.
    public var notBefore: Date?
    /// The session that must end first; nil if the session has no dependency, or the dependency is satisfied.
    public var dependency: SessionDependency?
    /// The rate limit of the session in bytes per second; nil if the session itself has no limit.
    public var rateLimit: Int64?
    /// The time from the session's first start after which the session fails; nil for no limit. See ``SessionOptions/deadline``.
    public var deadline: Duration?
    /// How long the session's files spent in each phase of a transfer. Nil in lists of sessions, and in a fleet (a queue of several hosts); see
    /// ``ControllableQueue/status(of:)``.
    public var times: TransferTimes?
    /// The member (host) of a fleet that has taken the session; nil if no member has taken it, and in all other kinds of queues.
    public var host: String?
}

extension SessionStatus {
    /// Creates a snapshot of a session of another kind of queue, such as a fleet. All other properties are nil or empty.
    package init(
        id: SessionID, index: Int, state: SessionState, name: String, direction: TransferDirection, account: String,
        statistics: SessionStatistics, createdAt: Date
    ) {
        self.init(
            id: id, index: index, state: state, phase: nil, why: nil, name: name, direction: direction, account: account, endpoint: nil,
            transport: nil, tags: [], context: nil, statistics: statistics, attempts: 0, error: nil, failedItem: nil, createdAt: createdAt,
            startedAt: nil, endedAt: nil, expectedEnd: nil, notBefore: nil, dependency: nil, rateLimit: nil, deadline: nil)
    }
}

extension QueueStatus {
    /// Creates a snapshot of another kind of queue, such as a fleet. Sets no limits, and ``isIdle`` to false.
    ///
    /// - Parameter counts: The number of sessions in each state.
    package init(mode: Mode, counts: [SessionState: Int], orderRevision: UInt64, revision: UInt64) {
        self.init(
            mode: mode, sessions: counts.reduce(0) { $0 + ($1.key == .draft ? 0 : $1.value) }, running: counts[.running] ?? 0,
            waiting: counts[.waiting] ?? 0, scheduled: 0, paused: counts[.paused] ?? 0, held: counts[.held] ?? 0,
            drafts: counts[.draft] ?? 0, cancelled: counts[.cancelled] ?? 0, completed: counts[.completed] ?? 0,
            failed: counts[.failed] ?? 0, nextDue: nil, isIdle: false, orderRevision: orderRevision, revision: revision,
            maxConcurrentSessions: .max, rateLimit: nil, retention: .keepAll, diskFloor: 0, network: .unconstrained)
    }
}

/// The statistics of a session.
public struct SessionStatistics: Hashable, Sendable, Codable {
    /// The number of files. A folder that has not been read yet counts as one empty file.
    public var files: Int
    /// The number of completed files.
    public var filesDone: Int
    /// The number of failed files.
    public var filesFailed: Int
    /// The total size in bytes of the files whose size is known.
    public var bytesKnown: Int64
    /// The number of unfinished files of unknown size, such as downloads whose size the server has not reported.
    public var filesUnsized: Int
    /// The number of bytes confirmed by the other end; for a download, received and synced to the disk.
    public var bytesDone: Int64
    /// The number of bytes that the network accepted or delivered; at most ``bytesTotal`` if the total is known.
    public var bytesSent: Int64
    /// The recent rate in bytes per second; nil if the session does not run, or if the rate is unknown.
    public var rate: Double?
    /// The average rate in bytes per second: ``bytesDone`` divided by ``secondsElapsed``; nil before the first confirmed byte.
    public var averageRate: Double?
    /// The total duration of all runs of the session, in seconds. Includes runs in earlier processes.
    public var secondsElapsed: Double
    /// The remaining time at the recent rate, in seconds; nil if it is unknown, and in the first half second of a run. Also nil once all
    /// bytes were sent, because the other end may still take any time to store the bytes.
    public var secondsRemaining: Double?

    /// The size of all files, in bytes; nil while the size of a file is unknown. Excludes folders that have not been read yet.
    public var bytesTotal: Int64? { filesUnsized == 0 ? bytesKnown : nil }

    /// The fraction of bytes that were sent or received, in 0 ... 1, for a progress bar. If all files are empty, the fraction of completed files.
    /// Nil if ``bytesTotal`` is nil, or if there are no files.
    ///
    /// The number of sent bytes can exceed the number of confirmed bytes by a whole file, because a server confirms a request only at its end.
    public var fractionCompleted: Double? {
        guard let bytesTotal else { return nil }
        if bytesTotal > 0 { return min(1, Double(max(bytesDone, bytesSent)) / Double(bytesTotal)) }
        return files > 0 ? min(1, Double(filesDone) / Double(files)) : nil
    }

    package init(
        files: Int = 0, filesDone: Int = 0, filesFailed: Int = 0, bytesTotal: Int64 = 0, bytesDone: Int64 = 0, bytesSent: Int64 = 0,
        filesUnsized: Int = 0, rate: Double? = nil, averageRate: Double? = nil, secondsElapsed: Double = 0, secondsRemaining: Double? = nil
    ) {
        self.files = files
        self.filesDone = filesDone
        self.filesFailed = filesFailed
        bytesKnown = bytesTotal
        self.filesUnsized = filesUnsized
        self.bytesDone = bytesDone
        self.bytesSent = bytesSent
        self.rate = rate
        self.averageRate = averageRate
        self.secondsElapsed = secondsElapsed
        self.secondsRemaining = secondsRemaining
    }

    mutating func setElapsed(_ seconds: Double) {
        secondsElapsed = seconds
        averageRate = seconds > 0 && bytesDone > 0 ? Double(bytesDone) / seconds : nil
    }
}

/// A snapshot of the queue itself.
public struct QueueStatus: Hashable, Sendable, Codable {
    /// Whether the queue starts and continues sessions. Not stored: a newly opened queue is stopped.
    public enum Mode: String, Hashable, Sendable, Codable {
        /// No session runs or starts.
        case stopped
        /// Sessions start in turn.
        case running
        /// No session starts, and running sessions may finish.
        case draining
        /// No session starts, and running sessions are being interrupted.
        case stopping
    }

    /// Whether the queue starts and continues sessions.
    public var mode: Mode
    /// The number of sessions in the order of the queue. Excludes drafts.
    public var sessions: Int
    /// The number of running sessions.
    public var running: Int
    /// The number of sessions that wait, for any reason.
    public var waiting: Int
    /// The number of waiting sessions that start automatically at a future time.
    public var scheduled: Int
    /// The number of paused sessions.
    public var paused: Int
    /// The number of held sessions.
    public var held: Int
    /// The number of drafts.
    public var drafts = 0
    /// The number of cancelled sessions.
    public var cancelled: Int
    /// The number of completed sessions that are still in the queue.
    public var completed: Int
    /// The number of failed sessions.
    public var failed: Int
    /// When the first of the ``scheduled`` sessions is due; nil if no session is scheduled.
    public var nextDue: Date?
    /// Whether the ``mode`` is running, but no session runs and none can start without an action by the app or the user.
    public var isIdle: Bool
    /// The revision of the order. It grows with each insertion, removal and move, even across restarts of the process.
    public var orderRevision: UInt64
    /// The number of the last event; see ``TransferQueue/events(since:)``.
    public var revision: UInt64 = 0
    /// The maximum number of active sessions; `Int.max` for no limit, as in a fleet.
    public var maxConcurrentSessions: Int
    /// The same as ``maxConcurrentSessions``, but nil for no limit.
    package var sessionLimit: Int? { maxConcurrentSessions == .max ? nil : maxConcurrentSessions }
    /// The rate limit of all sessions together, in bytes per second; nil for no limit.
    public var rateLimit: Int64?
    /// The rate limits that replace ``rateLimit`` at some times of the week; nil for none.
    public var timetable: BandwidthTimetable?
    /// The rate limit at this time, according to the timetable, in bytes per second; nil for no limit.
    public var currentRateLimit: Int64?
    /// How long completed sessions stay in the queue.
    public var retention: Retention
    /// The free space on the disk of the storage folder, in bytes, below which no session starts.
    public var diskFloor: Int64
    /// The current network condition according to the app.
    public var network: NetworkCondition
}
