import Logging
package import SystemPackage

/// The calls with which a run reads local files and folders. Finds calls that may hang, because the disk or the network share does not respond.
package struct LocalReads: Sendable {
    /// The minimum duration of a long call.
    static let limit = Duration.seconds(30)

    private struct Call: Sendable {
        let path: FilePath
        let start: Duration
    }

    private var calls: [Int: Call] = [:]
    private var last = 0
    /// Whether the current long calls were reported.
    private var isReported = false

    mutating func begin(_ path: FilePath, at uptime: Duration) -> Int {
        last &+= 1
        calls[last] = Call(path: path, start: uptime)
        return last
    }

    mutating func end(_ number: Int) { calls[number] = nil }

    /// Returns the path of the longest call and the number of long calls. Returns nil if no call is long, or if this method has already returned
    /// a value and there has been a long call ever since.
    mutating func newLongReads(at uptime: Duration) -> (path: FilePath, count: Int)? {
        guard let long = longReads(at: uptime) else {
            isReported = false
            return nil
        }
        guard !isReported else { return nil }
        isReported = true
        return long
    }

    /// Returns the path of the longest call and the number of long calls; nil if no call is long.
    func longReads(at uptime: Duration) -> (path: FilePath, count: Int)? {
        let long = calls.values.filter { uptime - $0.start >= Self.limit }
        return long.min { $0.start < $1.start }.map { ($0.path, long.count) }
    }

    /// Returns the warning about long calls.
    ///
    /// - Parameters:
    ///   - path: The path of the longest call.
    ///   - count: The number of long calls, including the longest one.
    package static func warning(about path: FilePath, count: Int) -> String {
        let others =
            switch count {
            case ...1: ""
            case 2: " Another file of the session is also waiting."
            default: " \(count - 1) other files of the session are also waiting."
            }
        return "Reading \(path) has taken more than \(limit). Its disk or network share may not be responding.\(others)"
    }
}

extension RunContext {
    /// Runs a call that reads a local file, on a thread that is allowed to block. If the session's calls hang, they block at most
    /// ``BlockingIO/Pool/ownerLimit`` threads.
    func readLocally<Value: Sendable, Failure: Error>(
        _ path: FilePath, _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let number = live.beginLocalRead(of: path, at: clock.now())
        defer { live.endLocalRead(number) }
        return try await BlockingIO.run(.files, for: .session(id)) { [localReadObserver] () throws(Failure) -> Value in
            localReadObserver?(path)
            return try body()
        }
    }

    /// Logs a warning if calls that read local files have been running for a long time.
    func reportLongReads() {
        guard let (path, count) = live.newLongReads(at: clock.now()) else { return }
        logger.warning("\(LocalReads.warning(about: path, count: count))")
    }
}
