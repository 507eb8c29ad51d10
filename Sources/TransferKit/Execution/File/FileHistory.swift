package import TransferCore

/// The history of one file in this process, over all of its attempts and runs. Contains only facts that affect later decisions about the
/// file.
package struct FileHistory: Equatable, Sendable {
    /// Consecutive attempts that failed because one endpoint was unreachable or could not serve the file.
    struct Outage: Equatable, Sendable {
        /// The uptime at which the first of these attempts failed, or at which the file began to wait for the endpoint.
        var since: Duration
        var attempts = 0
    }

    /// The number of consecutive failed attempts at an endpoint after which the file may move to another endpoint and abandon its bytes.
    static let attemptsBeforeFallback = 3

    /// The maximum of `fruitlessRestarts`. Limits the attempts at a server that keeps losing the bytes that it accepted.
    private static let maximumFruitlessRestarts = 5

    /// The number of attempts since the file last restarted.
    var attempts = 0
    /// The number of consecutive failed attempts. Failures at several endpoints without a delay between them count as one. Attempts that
    /// failed because of an outage of the endpoint, or a lack of space on this machine, do not count.
    package var failures = 0
    /// The number of consecutive protocol violations.
    var violations = 0
    /// Whether the endpoint confirmed or delivered content in the last attempt.
    var hasConfirmed = false
    /// Whether the endpoint performed one of the last attempt's requests, even one that moved no content.
    private(set) var wasServed = false
    /// Whether the last attempt moved more than 1 MiB. If so, the next attempt during an outage must start later than usual.
    package private(set) var isCostly = false
    /// Whether the last attempt failed because its endpoint was down, and probably not only for this file.
    private(set) var isOutage = false
    /// For each endpoint, the value of ``EndpointState/FailureSeries/responses`` when this file last failed there. Missing if that failure
    /// can't concern only this file, or if the endpoint has performed a request of this file since; see ``concernsOnlyThisFile(_:at:_:)``.
    private var responsesAtFailure: [Endpoint: Int] = [:]
    /// Whether the file has restarted for a reason other than a change of its source, and has made no progress since.
    private var hasRestarted = false
    /// The number of restarts since `furthest` last grew or the source last changed. A restart because of a changed source does not count.
    private var fruitlessRestarts = 0
    /// The largest confirmed position, in bytes, that counted as progress at any endpoint since the source last changed. Restarts for other
    /// reasons do not reset this position.
    private var furthest: Int64 = 0
    /// Whether the other end may have a record of the file, such as a form submission. If so, the file must not be sent again.
    var mayHaveRecord = false
    /// The number of restarts because the source file changed.
    var sourceChanges = 0
    /// The number of times that the transferred content had a wrong checksum. Restarts do not reset this number.
    var mismatches = 0
    /// The endpoints that the file left since the last delay or progress, each with the class of its failure.
    var failedEndpoints: [Endpoint: FailureClass] = [:]
    var outages: [Endpoint: Outage] = [:]
    /// The endpoints that the file left after its last allowed attempt there, since the last progress or restart. Includes an unreachable endpoint
    /// only if the file abandoned confirmed bytes there.
    var exhausted: Set<Endpoint> = []
    /// The largest position that each endpoint confirmed since the file last restarted.
    var confirmed: [Endpoint: Int64] = [:]
    /// The confirmed position at each endpoint from which progress is measured. The position changes only when the advance is large enough
    /// to count as progress, so the small advances of several attempts add up.
    var seriesStart: [Endpoint: Int64] = [:]
    /// The endpoints that may have kept bytes without confirming them. An attempt there ended after it had moved more than 1 MiB, and the next
    /// attempt can resume. As with confirmed bytes, the file does not abandon these bytes immediately.
    package private(set) var unconfirmed: Set<Endpoint> = []
    /// The endpoint of the last attempt; nil after the file has left the endpoint or restarted.
    var lastEndpoint: Endpoint?
    /// The uptime at which the next attempt is due; nil if the attempt is due now.
    private(set) var dueAt: Duration?
    /// The failure after which the file waits; nil if the file waits for an unavailable endpoint, or does not wait.
    private(set) var waitsAfter: TransferError?

    package init() {}

    /// Records the progress of an attempt.
    ///
    /// - Parameters:
    ///   - position: The number of bytes of the file that the endpoint confirmed.
    ///   - size: The size of the file; nil if it is unknown.
    ///   - start: The confirmed position at which the attempt began.
    package mutating func progressed(to position: Int64, of size: Int64?, at endpoint: Endpoint, from start: Int64) {
        let best = max(confirmed[endpoint] ?? 0, start)
        guard position > best else { return }
        let base = seriesStart[endpoint] ?? best
        seriesStart[endpoint] = base
        confirmed[endpoint] = position
        outages[endpoint] = nil
        guard RetryPolicy.isProgress(confirmed: position - base, of: size) else { return }
        if position > furthest {
            furthest = position
            fruitlessRestarts = 0
        }
        seriesStart = [endpoint: position]
        failures = 0
        violations = 0
        hasRestarted = false
        failedEndpoints = [:]
        exhausted = []
    }

    /// Records a failed attempt.
    ///
    /// - Parameter liveness: The endpoint's responses to all files, and its failures for all files.
    package mutating func failed(
        _ error: TransferError, at endpoint: Endpoint, uptime: Duration, liveness: EndpointState.FailureSeries = .init()
    ) {
        let concernsOnlyThisFile = concernsOnlyThisFile(error, at: endpoint, liveness)
        isOutage = RecoveryDecision.isOutage(error) && !concernsOnlyThisFile
        if !isOutage { failures += 1 }
        if error.failureClass == .resumeLost, error.code == .checksumMismatch { mismatches += 1 }
        violations = error.failureClass == .protocolViolation ? violations + 1 : 0
        guard isUnreachable(error) else {
            outages[endpoint] = nil
            return
        }
        outages[endpoint, default: Outage(since: uptime)].attempts += 1
    }

    /// Whether the last failure means that its endpoint can't serve this file now.
    ///
    /// - Parameter error: The error of the last failure.
    func isUnreachable(_ error: TransferError) -> Bool {
        isOutage || RecoveryDecision.isUnreachable(error, violations: violations)
    }

    /// Returns whether a failure that looks like an outage concerns only this file, not the endpoint; false for other failures. Also records
    /// the endpoint's number of responses for the next call.
    ///
    /// Only some errors can concern a single file; see ``RecoveryDecision/mayConcernOneFile(_:)``. Such a failure concerns only this file in
    /// two cases:
    /// - The endpoint performed one of the attempt's requests.
    /// - The endpoint has responded to other files since this file's last failure there, and no other file failed after the last response.
    private mutating func concernsOnlyThisFile(
        _ error: TransferError, at endpoint: Endpoint, _ liveness: EndpointState.FailureSeries
    ) -> Bool {
        guard RecoveryDecision.isOutage(error), RecoveryDecision.mayConcernOneFile(error) else {
            responsesAtFailure[endpoint] = nil
            return false
        }
        guard !wasServed else { return true }
        guard let known = responsesAtFailure.updateValue(liveness.responses, forKey: endpoint) else { return false }
        return liveness.responses > known && !liveness.isShared
    }

    /// Records the start of an attempt.
    package mutating func began() {
        hasConfirmed = false
        wasServed = false
        isCostly = false
    }

    /// Records the end of an attempt that did not complete the file.
    ///
    /// - Parameters:
    ///   - wasServed: Whether the endpoint performed one of the attempt's requests.
    ///   - moved: The number of bytes that the attempt transferred.
    ///   - canResume: Whether the next attempt at the endpoint can continue where this one ended.
    package mutating func ended(at endpoint: Endpoint, wasServed: Bool, moved: Int64, canResume: Bool = false) {
        self.wasServed = wasServed
        isCostly = moved > FileWindow.smallSize
        if isCostly, canResume { unconfirmed.insert(endpoint) }
        // The response to this file also raises the endpoint's number of responses, but does not show that the endpoint serves other files.
        if wasServed { responsesAtFailure[endpoint] = nil }
    }

    mutating func wait(until uptime: Duration, after error: TransferError?) {
        dueAt = uptime
        waitsAfter = error
    }

    mutating func stopWaiting() {
        dueAt = nil
        waitsAfter = nil
    }

    /// Whether an endpoint has been unreachable for at least `limit`, not counting time without a route; false if `limit` is nil, which means no
    /// limit.
    package func isOutage(of endpoint: Endpoint, longerThan limit: Duration?, uptime: Duration, _ routes: RouteGap) -> Bool {
        guard let outage = outages[endpoint], let limit, let since = routes.start(ofOutageSince: outage.since, at: endpoint) else {
            return false
        }
        return uptime - since >= limit
    }

    /// Whether the file may abandon its bytes at an endpoint: only after ``attemptsBeforeFallback`` failed attempts in an outage, and after a delay.
    ///
    /// - Parameter delay: The minimum time since the endpoint's outage began, not counting time without a route.
    package func mayFallBack(from endpoint: Endpoint, after delay: Duration, uptime: Duration, _ routes: RouteGap) -> Bool {
        guard let outage = outages[endpoint], let since = routes.start(ofOutageSince: outage.since, at: endpoint) else { return false }
        return outage.attempts >= Self.attemptsBeforeFallback && uptime - since >= delay
    }

    /// Whether the file may restart after its endpoint lost the file's bytes.
    package var mayRestart: Bool { !hasRestarted && fruitlessRestarts < Self.maximumFruitlessRestarts }

    /// Records that the file continues at another endpoint without a delay.
    mutating func moved(from endpoint: Endpoint, _ error: TransferError, isExhausted: Bool) {
        failedEndpoints[endpoint] = error.failureClass
        unconfirmed.remove(endpoint)
        // Failures without a delay between them count as one, so this failure does not count. If the file has used up its attempts here, it gets
        // all attempts again at the next endpoint. If this endpoint was unreachable, the file gets them only if it abandons confirmed bytes.
        let isUnreachable = isUnreachable(error)
        if isExhausted, !isUnreachable || confirmed[endpoint, default: 0] > 0, exhausted.insert(endpoint).inserted {
            failures = 0
        } else if !isOutage {
            failures -= 1
        }
        violations = 0
        lastEndpoint = nil
    }

    /// Records that the file restarts. After a change of the source, earlier restarts no longer limit further restarts.
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
        seriesStart = [:]
        exhausted = []
        unconfirmed = []
        lastEndpoint = nil
    }
}
