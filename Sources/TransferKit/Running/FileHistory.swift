package import TransferCore

/// What happened to one file in this process, over all of its attempts and runs, as far as it decides what happens next.
package struct FileHistory: Equatable, Sendable {
    /// Attempts that could not reach one endpoint, in a row.
    struct Outage: Equatable, Sendable {
        /// When the first of them failed, as uptime.
        var since: Duration
        var attempts = 0
    }

    /// How many attempts in a row have to fail before bytes at an endpoint are given up.
    static let attemptsBeforeFallback = 3

    /// A server that keeps losing what it has just taken gets no further however often the file begins anew.
    private static let mostFruitlessRestarts = 5

    /// Attempts of the file's present life.
    var attempts = 0
    /// Attempts that failed in a row. Those at several endpoints with no delay between them count as one, and those that reached no server as
    /// none.
    package var failures = 0
    /// Answers that make no sense, in a row.
    var violations = 0
    /// Whether the last attempt got a sign of life from its endpoint.
    var hasMoved = false
    /// Whether the last attempt's endpoint performed a request of it.
    private(set) var isAnswered = false
    /// Whether the last attempt moved so much that an outage is no reason to repeat it soon.
    package private(set) var isCostly = false
    /// Whether the last attempt failed for the endpoint, and not for the file.
    private(set) var isOutage = false
    /// How often each endpoint had answered when the file last failed there in a way that may be an outage; none once it answered the file.
    private var answersAtFailure: [Endpoint: Int] = [:]
    private var hasRestarted = false
    /// How often the file began anew since it last got further than ever.
    private var fruitlessRestarts = 0
    /// The most that any endpoint confirmed in any of the file's lives.
    private var furthest: Int64 = 0
    var sourceChanges = 0
    /// How often all of it had moved and had another checksum, in all of the file's lives.
    var mismatches = 0
    /// Endpoints that failed since the last delay, and how.
    var passedOver: [Endpoint: FailureClass] = [:]
    var outages: [Endpoint: Outage] = [:]
    /// Endpoints that the file left since all attempts were used up there.
    var exhausted: Set<Endpoint> = []
    /// The most that each endpoint confirmed in the file's present life.
    var confirmed: [Endpoint: Int64] = [:]
    /// What each endpoint had confirmed when the present row of failures began: gains of several attempts add up.
    var rowStart: [Endpoint: Int64] = [:]
    /// The endpoint that the file used last.
    var home: Endpoint?
    /// When the next attempt is due, as uptime; nil if at once.
    private(set) var dueAt: Duration?
    /// The failure that it waits after; nil if it waits for an endpoint that can't be asked.
    private(set) var waitsAfter: TransferError?

    package init() {}

    /// Notes how far an attempt got.
    package mutating func progressed(to position: Int64, of size: Int64?, at endpoint: Endpoint, from start: Int64) {
        let best = max(confirmed[endpoint] ?? 0, start)
        guard position > best else { return }
        let base = rowStart[endpoint] ?? best
        rowStart[endpoint] = base
        confirmed[endpoint] = position
        outages[endpoint] = nil
        guard RetryPolicy.isProgress(confirmed: position - base, of: size) else { return }
        if position > furthest {
            furthest = position
            fruitlessRestarts = 0
        }
        rowStart = [endpoint: position]
        failures = 0
        violations = 0
        hasRestarted = false
        passedOver = [:]
        exhausted = []
    }

    /// Notes that an attempt failed.
    ///
    /// - Parameters:
    ///   - liveness: What the endpoint did for other files.
    package mutating func failed(
        _ error: TransferError, at endpoint: Endpoint, uptime: Duration, liveness: EndpointLiveness.Row = .init()
    ) {
        let isOwn = isOwn(error, at: endpoint, liveness)
        isOutage = FailureVerdict.isOutage(error) && !isOwn
        if !isOutage { failures += 1 }
        if error.failureClass == .resumeLost, error.code == .checksumMismatch { mismatches += 1 }
        violations = error.failureClass == .protocolViolation ? violations + 1 : 0
        guard isUnreachable(error) else {
            outages[endpoint] = nil
            return
        }
        outages[endpoint, default: Outage(since: uptime)].attempts += 1
    }

    /// Whether the last failure says that its endpoint can't serve this file now.
    func isUnreachable(_ error: TransferError) -> Bool {
        isOutage || FailureVerdict.isUnreachable(error, violations: violations)
    }

    /// Whether a failure is the file's own: its endpoint answered in the attempt, or has answered other files since the file's last failure there,
    /// and no other file has failed there since.
    private mutating func isOwn(_ error: TransferError, at endpoint: Endpoint, _ liveness: EndpointLiveness.Row) -> Bool {
        guard FailureVerdict.isOutage(error), FailureVerdict.mayConcernOneFile(error) else {
            answersAtFailure[endpoint] = nil
            return false
        }
        guard !isAnswered else { return true }
        guard let known = answersAtFailure.updateValue(liveness.answers, forKey: endpoint) else { return false }
        return liveness.answers > known && !liveness.isShared
    }

    /// An attempt begins.
    package mutating func began() {
        hasMoved = false
        isAnswered = false
        isCostly = false
    }

    /// What an attempt that did not complete the file got from its endpoint.
    ///
    /// - Parameters:
    ///   - isAnswered: Whether the endpoint performed a request of it.
    ///   - moved: How many bytes moved.
    package mutating func ended(at endpoint: Endpoint, isAnswered: Bool, moved: Int64) {
        self.isAnswered = isAnswered
        isCostly = moved > FileWindow.smallSize
        // What the endpoint answered this file is no sign that it serves others.
        if isAnswered { answersAtFailure[endpoint] = nil }
    }

    /// The next attempt is due at a time, as uptime.
    mutating func wait(until uptime: Duration, after error: TransferError?) {
        dueAt = uptime
        waitsAfter = error
    }

    mutating func stopWaiting() {
        dueAt = nil
        waitsAfter = nil
    }

    /// Whether an endpoint could not be reached for so long; false if a session waits for ever.
    func isOutage(of endpoint: Endpoint, longerThan patience: Duration?, uptime: Duration) -> Bool {
        guard let outage = outages[endpoint], let patience else { return false }
        return uptime - outage.since >= patience
    }

    /// Whether what an endpoint has of the file may be left behind.
    func mayFallBack(from endpoint: Endpoint, after patience: Duration, uptime: Duration) -> Bool {
        guard let outage = outages[endpoint] else { return false }
        return outage.attempts >= Self.attemptsBeforeFallback && uptime - outage.since >= patience
    }

    /// Whether the file may begin anew because its endpoint lost what it had.
    package var mayRestart: Bool { !hasRestarted && fruitlessRestarts < Self.mostFruitlessRestarts }

    /// The file goes on at another endpoint without a delay.
    mutating func moved(from endpoint: Endpoint, _ error: TransferError, isExhausted: Bool) {
        passedOver[endpoint] = error.failureClass
        // One round over all endpoints counts as one failure. Where bytes are left behind, or the server was there, the next endpoint gets a row
        // of its own.
        let isUnreachable = isUnreachable(error)
        if isExhausted, !isUnreachable || confirmed[endpoint, default: 0] > 0, exhausted.insert(endpoint).inserted {
            failures = 0
        } else if !isOutage {
            failures -= 1
        }
        violations = 0
        home = nil
    }

    /// The file begins anew.
    package mutating func startedOver(becauseSourceChanged: Bool) {
        if becauseSourceChanged {
            sourceChanges += 1
            furthest = 0
            fruitlessRestarts = 0
        } else {
            hasRestarted = true
            fruitlessRestarts += 1
        }
        attempts = 0
        outages = [:]
        confirmed = [:]
        rowStart = [:]
        exhausted = []
        home = nil
    }
}
