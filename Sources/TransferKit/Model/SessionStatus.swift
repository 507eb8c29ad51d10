public import Foundation
public import SystemPackage
public import TransferCore

/// A snapshot of a session.
public struct SessionStatus: Hashable, Sendable, Codable {
    /// The session.
    public var id: SessionID
    /// Its place in the queue, from 0.
    public var index: Int
    /// Where it is in its life.
    public var state: SessionState
    /// What it does at the moment; nil unless it runs.
    public var phase: SessionPhase?
    /// What it waits for; nil unless it waits.
    public var why: WaitReason?
    /// A name for people.
    public var name: String
    /// Which way.
    public var direction: TransferDirection
    /// The account's name.
    public var account: String
    /// The address of the endpoint that it uses or used last; nil before its first attempt.
    public var endpoint: String?
    /// The transport of that endpoint.
    public var transport: TransportID?
    /// Words that the app groups sessions by.
    public var tags: [String]
    /// The app's own value as JSON.
    public var context: Data?
    /// Files, bytes, rates and times.
    public var statistics: SessionStatistics
    /// How often it was activated or tried again.
    public var attempts: Int
    /// Why it failed, or why its last attempt did.
    public var error: TransferError?
    /// The local file of the first item that failed; nil if none did.
    public var failedItem: FilePath?
    /// When it was enqueued.
    public var createdAt: Date
    /// When it first ran; nil before.
    public var startedAt: Date?
    /// When it completed or failed; nil before.
    public var endedAt: Date?
    /// When it ends at its recent rate; nil unless it runs and that is known. For those that wait see ``TransferQueue/forecast()``.
    public var expectedEnd: Date?
}

/// The figures of a session.
public struct SessionStatistics: Hashable, Sendable, Codable {
    /// How many files there are.
    public var files: Int
    /// How many are completed.
    public var filesDone: Int
    /// How many failed.
    public var filesFailed: Int
    /// The size of all files whose size is known, in bytes.
    public var bytesKnown: Int64
    /// How many unfinished files have a size that is not known yet, such as downloads that the server has not told of.
    public var filesUnsized: Int
    /// Bytes confirmed by the other end; of a download, received and synced to the disk.
    public var bytesDone: Int64
    /// Bytes taken by the network, or brought by it, at most ``bytesTotal``.
    public var bytesSent: Int64
    /// The recent rate in bytes per second; nil unless bytes move.
    public var rate: Double?
    /// Confirmed bytes per second over all the time that the session ran; nil before the first.
    public var averageRate: Double?
    /// How long the session has run, in seconds: all of its runs, over restarts, without the time in between.
    public var secondsElapsed: Double
    /// The time left at the recent rate, in seconds; nil when unknown.
    public var secondsRemaining: Double?

    /// The size of all files, in bytes; nil while that of one is not known.
    public var bytesTotal: Int64? { filesUnsized == 0 ? bytesKnown : nil }

    /// Makes figures.
    ///
    /// - Parameter bytesTotal: That of the files whose size is known.
    public init(
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

    /// Sets how long the session has run, and what follows from that.
    mutating func setElapsed(_ seconds: Double) {
        secondsElapsed = seconds
        averageRate = seconds > 0 && bytesDone > 0 ? Double(bytesDone) / seconds : nil
    }
}

/// A snapshot of the queue itself.
public struct QueueStatus: Hashable, Sendable, Codable {
    /// What the queue does with sessions that could start. Belongs to the process; not persisted.
    public enum Mode: String, Hashable, Sendable, Codable {
        /// Nothing starts.
        case stopped
        /// Sessions start in turn.
        case running
        /// Nothing starts, and what runs may finish.
        case draining
        /// Nothing starts, and what runs is being interrupted.
        case stopping
    }

    /// What the queue does with sessions that could start.
    public var mode: Mode
    /// How many sessions there are, in all states.
    public var sessions: Int
    /// How many run.
    public var running: Int
    /// How many wait, for whatever reason.
    public var waiting: Int
    /// How many of those that wait are due at a time to come, and start by themselves.
    public var scheduled: Int
    /// How many are paused.
    public var paused: Int
    /// How many are held.
    public var held: Int
    /// How many were cancelled.
    public var cancelled: Int
    /// How many completed and are still kept.
    public var completed: Int
    /// How many failed.
    public var failed: Int
    /// When the first of ``scheduled`` is due; nil if there is none.
    public var nextDue: Date?
    /// Whether nothing runs and nothing can start without a person.
    public var isIdle: Bool
    /// Which state of the order it is: grows with each insertion, removal and move, over restarts too.
    public var orderRevision: UInt64
    /// The number of the last event; see ``TransferQueue/events(since:)``.
    public var revision: UInt64 = 0
    /// How many sessions may be active at once.
    public var sessionLimit: Int
    /// Bytes per second for all sessions together; nil for no limit.
    public var rateLimit: Int64?
    /// What the app said of the network last.
    public var network: NetworkCondition
}
