/// The combined statistics of all sessions of a queue, in all states except drafts. Removed sessions count only in ``secondsElapsed``,
/// ``averageRate`` and ``removalsDue``.
public struct QueueStatistics: Hashable, Sendable, Codable {
    /// The number of files. A folder that has not been read yet counts as one file.
    public var files: Int
    /// The number of completed files.
    public var filesDone: Int
    /// The number of failed files.
    public var filesFailed: Int
    /// The total size in bytes of the files whose size is known.
    public var bytesTotal: Int64
    /// The number of confirmed bytes; see ``SessionStatistics/bytesDone``. Stays constant during a long request that the server confirms
    /// only at the end.
    public var bytesDone: Int64
    /// The number of bytes that the network accepted or delivered, whether confirmed or not, at most ``bytesTotal``. Unlike ``bytesDone``, it
    /// grows during a long request.
    public var bytesSent: Int64
    /// The number of bytes that running and waiting sessions have not transferred yet. Excludes files of unknown size, and sessions that
    /// need user action first.
    public var bytesRemaining: Int64
    /// The total time during which at least one session ran, in seconds, including earlier processes.
    public var secondsElapsed: Double
    /// The recent rate of all running sessions together, in bytes per second; nil if no session runs, or if the rate is unknown.
    public var rate: Double?
    /// The average rate in bytes per second: all confirmed bytes, including those of removed sessions, divided by ``secondsElapsed``. Nil before the
    /// first confirmed byte.
    public var averageRate: Double?
    /// The time for ``bytesRemaining`` at the recent rate, in seconds; nil if it is unknown.
    public var secondsRemaining: Double?
    /// The number of pending removals of unfinished uploads from servers, for example after sessions were removed or files restarted.
    public var removalsDue: Int

    package init(
        files: Int = 0, filesDone: Int = 0, filesFailed: Int = 0, bytesTotal: Int64 = 0, bytesDone: Int64 = 0, bytesSent: Int64 = 0,
        bytesRemaining: Int64 = 0, secondsElapsed: Double = 0, rate: Double? = nil, averageRate: Double? = nil,
        secondsRemaining: Double? = nil, removalsDue: Int = 0
    ) {
        self.files = files
        self.filesDone = filesDone
        self.filesFailed = filesFailed
        self.bytesTotal = bytesTotal
        self.bytesDone = bytesDone
        self.bytesSent = bytesSent
        self.bytesRemaining = bytesRemaining
        self.secondsElapsed = secondsElapsed
        self.rate = rate
        self.averageRate = averageRate
        self.secondsRemaining = secondsRemaining
        self.removalsDue = removalsDue
    }
}
