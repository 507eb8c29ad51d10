import Locking
import Logging
import SystemPackage
import TransferCore

/// Transfers one file or lists one folder, with repeated attempts. Ends when the work has succeeded or failed. Also ends when the run must decide how
/// to continue, for example before a wait of more than `RetryPolicy.maximumInPlaceDelay`.
struct FileRunner: Sendable {
    enum Outcome: Sendable {
        case completed
        /// The file failed. The session's options determine whether the session continues with its other files.
        case givenUp(TransferError)
        case sessionFailed(TransferError)
        /// The next attempt is due at ``FileHistory/dueAt``. The error is nil if no attempt failed.
        case waits(TransferError?)
        case endpointsUnavailable(TransferError)
        case accountBlocked(TransferError, Account)
        case noSpace(TransferError)
    }

    enum Step: Sendable {
        case attempt(PreparedAttempt)
        /// The item is a folder, which the endpoint lists.
        case listing(at: Endpoint)
        /// The attempt failed before it began.
        case failed(TransferError, at: Endpoint)
        case ended(Outcome)
    }

    let context: RunContext
    let record: EndpointRecord
    let turns: RequestTurns
    var file: PendingFile
    /// The checkpoints of earlier attempts, by the endpoint's address.
    var checkpoints: [String: StoredCheckpoint]
    var history: FileHistory
    /// Whether this runner has begun an attempt for the file.
    var hasStarted = false
    /// The account that the current attempt uses, with its endpoints in the order in which they are tried.
    private(set) var availability: EndpointAvailability
    /// The parameters of the listing, if this runner lists a folder; nil for a file.
    let listing: FolderListingWork?

    init(
        context: RunContext, record: EndpointRecord, turns: RequestTurns = RequestTurns(), file: PendingFile,
        checkpoints: [String: StoredCheckpoint], history: FileHistory, availability: EndpointAvailability, listing: FolderListingWork? = nil
    ) {
        self.listing = listing
        self.context = context
        self.record = record
        self.turns = turns
        self.file = file
        // In a fleet, the host that added the file did not resolve the links in its path, because they may be different on this host.
        if context.options.partEpoch != nil { self.file.confinement?.root = file.source.removingLastComponent() }
        self.checkpoints = checkpoints
        self.history = history
        self.availability = availability.ordered(for: file, context.transports)
    }

    /// Runs attempts, beginning with the given step, until the file has an outcome.
    ///
    /// On systems with `Task.immediate`, the first attempt begins before the method first suspends, so files start in the order of the
    /// calls.
    ///
    /// - Throws: `CancellationError` when the run was interrupted; ``QueueError`` when the database can't be used.
    mutating func run(from first: Step) async throws -> Outcome {
        var step = first
        while true {
            let failure: (error: TransferError, endpoint: Endpoint, known: Int)
            switch step {
            case .attempt(let attempt):
                do {
                    try await perform(attempt)
                    return .completed
                } catch let error as TransferError {
                    failure = (error, attempt.endpoint, attempt.failuresBefore)
                }
            case .listing(let endpoint):
                let known = record.failures(of: endpoint)
                do {
                    try await list(at: endpoint)
                    return .completed
                } catch let error as TransferError {
                    failure = (error, endpoint, known)
                }
            case .failed(let error, let endpoint):
                failure = (error, endpoint, record.failures(of: endpoint))
            case .ended(let outcome):
                return outcome
            }
            try Task.checkCancellation()
            if try await reportFolder(from: failure.error, at: failure.endpoint) { return .completed }
            if let outcome = try await react(to: failure.error, at: failure.endpoint, failuresBefore: failure.known) { return outcome }
            guard let now = await context.currentEndpoints() else { throw CancellationError() }
            availability = now.ordered(for: file, context.transports)
            step = try await next()
        }
    }

    /// Chooses an endpoint, and prepares the next attempt or listing there.
    ///
    /// - Throws: `CancellationError` when the run was interrupted; ``QueueError`` when the database can't be used.
    mutating func next() async throws -> Step {
        try Task.checkCancellation()
        let preferred = try await context.endpointQuestion.choice(among: availability.available)
        let now = context.clock.now()
        history.stopWaiting()
        let avoided = record.avoided(at: now)
        let choice = EndpointChoice(
            availability, kept: keptBytes, history: history, avoided: avoided, preferred: preferred, uptime: now, routes: context.routes)
        switch choice {
        case .none:
            return .ended(.endpointsUnavailable(availability.error))
        case .wait(let endpoint, let until):
            if history.outages[endpoint] == nil { history.outages[endpoint] = FileHistory.Outage(since: now) }
            // The availability may be slightly outdated, so `until` may be in the past.
            history.wait(until: max(until, now + RetryPolicy.maximumInPlaceDelay), after: nil)
            return .ended(.waits(nil))
        case .use(let endpoint):
            if avoided.contains(endpoint), let until = record.pauseEnd(at: now) {
                history.wait(until: until, after: nil)
                return .ended(.waits(nil))
            }
            if let step = try await step(at: endpoint) { return step }
            availability.remove(endpoint)
            return try await next()
        }
    }

    /// Prepares an attempt or a listing; nil if another run probes the endpoint.
    private mutating func step(at endpoint: Endpoint) async throws -> Step? {
        guard listing == nil else { return try await requestAccess(to: endpoint) ? .listing(at: endpoint) : nil }
        do {
            return try await prepare(at: endpoint).map { .attempt($0) }
        } catch let error as TransferError {
            return .failed(error, at: endpoint)
        }
    }

    /// Requests permission to contact an endpoint now, and returns whether the permission was granted. If the endpoint failed too often,
    /// only one run at a time may probe it, that is, test it with an attempt. A probe blocks other runs for at most
    /// ``EndpointHealth/longestProbe``.
    func requestAccess(to endpoint: Endpoint) async throws(QueueError) -> Bool {
        guard availability.needingProbe.contains(endpoint) else { return true }
        return try await context.send(.probe(endpoint)).isGranted
    }

    /// Reacts to an error according to its class. Returns nil if the next attempt can begin.
    private mutating func react(to error: TransferError, at endpoint: Endpoint, failuresBefore: Int) async throws -> Outcome? {
        let options = context.options
        let now = context.clock.now()
        let own = EndpointState.File(session: context.key, position: file.position)
        let series = RecoveryDecision.isOutage(error) ? context.endpoints.of(endpoint).failed(own) : EndpointState.FailureSeries()
        history.failed(error, at: endpoint, uptime: now, liveness: series)
        await reportEndpointFailure(error, endpoint, failuresBefore: failuresBefore, at: now)
        let isUnreachable = history.isUnreachable(error)
        let recoveryHistory = recoveryHistory(at: endpoint, isUnreachable: isUnreachable, uptime: now)
        let rules = RecoveryDecision.Rules(
            retry: options.retry, onSourceChange: options.onSourceChange,
            fallsBackOnCredentials: availability.account.fallsBackOnCredentials)
        let decision = RecoveryDecision(error: error, history: recoveryHistory, rules: rules, fraction: context.randomFraction())
        context.logger.notice(
            "An attempt failed: \(error)",
            metadata: logMetadata(at: endpoint).merging(["decision": "\(decision)"]) { $1 })
        switch decision {
        case .retry(let delay):
            history.failedEndpoints = [:]
            if isUnreachable { record.pause(availability.available, until: now + delay, at: now) }
            guard delay <= RetryPolicy.maximumInPlaceDelay else {
                // The delay counts from the current time, not from `now`. The scheduler counts a host's delay from the time of the report, which is
                // later than `now`.
                history.wait(until: context.clock.now() + delay, after: error)
                return .waits(error)
            }
            context.live.disconnect { context.post(.attemptFailed(error, retryIn: delay, isLastInFlight: $0)) }
            try await context.clock.sleep(delay)
            return nil
        case .restart:
            try await restart(error)
            return nil
        case .nextEndpoint:
            history.moved(from: endpoint, error, isExhausted: recoveryHistory.failures >= options.retry.maximumAttempts)
            context.live.disconnect { context.post(.attemptFailed(error, retryIn: .zero, isLastInFlight: $0)) }
            return nil
        case .giveUpFile:
            return .givenUp(await namingPartFile(error, at: endpoint))
        case .failSession:
            return .sessionFailed(await namingPartFile(error, at: endpoint))
        case .blockAccount:
            return .accountBlocked(error, availability.account)
        case .waitForSpace:
            // The cause is on this machine, so the attempt does not count as failed.
            history.failures -= 1
            return .noSpace(error)
        }
    }

    /// Adds the path of the part file to the cause of a failed download's error, so that users who do not want to retry can remove the file.
    /// Returns the error unchanged if there is no part file, if the queue removes the part file, or if the disk hangs.
    private func namingPartFile(_ error: TransferError, at endpoint: Endpoint) async -> TransferError {
        guard let checkpoint = checkpoints[Endpoint.localPartFile(of: endpoint).address]?.checkpoint, !error.makesCheckpointsUseless else {
            return error
        }
        let partFiles = LocalPartFiles(sources: context.store.sources)
        let found = Locked<FilePath?>(nil)
        try? await TimeLimit.run(for: .seconds(10), context.clock, "The disk does not respond.") {
            let path = await partFiles.existingPath(of: checkpoint)
            found.withLock { $0 = path }
        }
        guard let path = found.withLock({ $0 }) else { return error }
        var error = error
        error.cause = (error.cause.map { "\($0); " } ?? "") + "unfinished part file: \(path)"
        return error
    }

    /// The number of the file's bytes that each endpoint keeps, by the endpoint's address. At least 1 if the endpoint may have kept unconfirmed
    /// bytes.
    private var keptBytes: [String: Int64] {
        var kept = checkpoints.mapValues(\.checkpoint.confirmed)
        for endpoint in history.unconfirmed { kept[endpoint.address] = max(1, kept[endpoint.address] ?? 1) }
        return kept
    }

    private func recoveryHistory(at endpoint: Endpoint, isUnreachable: Bool, uptime: Duration) -> RecoveryDecision.History {
        // This machine no longer has the released bytes of a stream, so no other endpoint can get them.
        let isBoundToEndpoint = file.kind == .stream && context.streams.find(file.streamName).map { $0.released > 0 } ?? false
        var others =
            isBoundToEndpoint
            ? [] : availability.available.filter { $0 != endpoint && history.failedEndpoints[$0] == nil && !history.exhausted.contains($0) }
        // A file that has used all attempts at this endpoint may also move to avoided endpoints.
        if isUnreachable, record.pauseEnd(at: uptime) != nil, history.failures < context.options.retry.maximumAttempts {
            let avoided = record.avoided(at: uptime)
            others.removeAll(where: avoided.contains)
        }
        return RecoveryDecision.History(
            failures: history.failures, violations: history.violations, mustNotRestart: !history.mayRestart,
            mismatches: history.mismatches, sourceChanges: history.sourceChanges,
            hasCheckpoint: keptBytes[endpoint.address, default: 0] > 0,
            mayFallBack: history.mayFallBack(from: endpoint, after: availability.account.fallbackAfter, uptime: uptime, context.routes),
            hasNextEndpoint: !others.isEmpty, othersMayWork: history.failedEndpoints.values.contains { $0 != .unsupported },
            isAuthenticated: context.endpoints.isAuthenticated(endpoint), outageAttempts: history.outages[endpoint]?.attempts ?? 0,
            isOutageTooLong: history.isOutage(
                of: endpoint, longerThan: context.options.retry.giveUpAfter, uptime: uptime, context.routes),
            concernsOnlyThisFile: !history.isOutage, isCostly: history.isCostly)
    }

    private func reportEndpointFailure(_ error: TransferError, _ endpoint: Endpoint, failuresBefore: Int, at uptime: Duration) async {
        // Reported before the file begins to wait for the host, so that the host's delay ends before the file's wait does.
        if let pause = error.retryAfter, pause > .zero { _ = try? await context.send(.hostBusy(endpoint, pause)) }
        let isUnreachable = history.isUnreachable(error)
        guard isUnreachable || RecoveryDecision.isTransient(error) && !history.hasConfirmed else { return }
        if record.failed(endpoint, since: failuresBefore, isUnreachable: isUnreachable, at: uptime) {
            context.post(.endpointFailed(endpoint, error))
            // Called after the failure is reported, so that reports of later activity come after that report.
            context.endpoints.of(endpoint).noteFailure()
        }
    }

    /// Restarts the file at byte 0, with a new transfer ID.
    mutating func restart(_ error: TransferError) async throws(QueueError) {
        history.startedOver(becauseSourceChanged: error.failureClass == .sourceChanged)
        file.generation += 1
        checkpoints = [:]
        context.live.restart(file)
        file.confirmed = 0
        try await context.send(.file(position: file.position, .restarted(generation: file.generation, error)))
    }
}
