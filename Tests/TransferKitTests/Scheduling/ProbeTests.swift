import Testing
import TransferCore
import TransferKit

/// Probes of endpoints that failed too often: which run may probe, and when.
@Suite struct ProbeTests {
    private let endpoint = Account.memory("a").endpoints[0]
    private let outage = TransferError(.unreachable, .connectionRefused, "No server responds.")

    /// Returns a scheduler with three sessions, and an endpoint that failed too often. Probes may start after 30 s, or after 10 s in
    /// an outage.
    private func scheduler(_ error: TransferError = .broken) throws -> Scheduler {
        var scheduler = try Scheduler.fixture(maxConcurrentSessions: 3)
        _ = try scheduler.perform(.enqueue([.draft(), .draft(), .draft()]))
        _ = try scheduler.perform(.start)
        for _ in 0..<5 { _ = try scheduler.report(.endpointFailed(endpoint, error), of: 1) }
        for key in SessionKey(1)...3 { _ = try scheduler.report(.ended(.endpointsUnavailable(error)), of: key) }
        return scheduler
    }

    @Test func runWithoutRequestDelaysOtherSessionsOnlyBriefly() throws {
        var scheduler = try scheduler()
        _ = try scheduler.perform(.start, at: .seconds(30))
        #expect(scheduler.runningIDs.count == 1)
        #expect(scheduler.nextDue(after: .seconds(30)) == .seconds(35))
        // The first run has sent no request within 5 s. It may still be reading a folder, or waiting for the delegate or a stream.
        _ = scheduler.schedule(at: .seconds(35))
        #expect(scheduler.runningIDs.count == 2)
        #expect(try scheduler.report(.probe(endpoint), of: 2, at: .seconds(36)).result.isGranted)
        #expect(try !scheduler.report(.probe(endpoint), of: 1, at: .seconds(37)).result.isGranted, "another run probes the endpoint")
        #expect(
            try scheduler.report(.probe(endpoint), of: 2, at: .seconds(38)).result.isGranted,
            "other files of the probing run may use the endpoint, too")
    }

    @Test func probeEndsWithFirstResponse() throws {
        var scheduler = try scheduler()
        _ = try scheduler.perform(.start, at: .seconds(30))
        _ = try scheduler.report(.probe(endpoint), of: 1, at: .seconds(30))
        #expect(scheduler.runningIDs.count == 1)
        _ = try scheduler.report(.endpointWorks(endpoint), of: 1, at: .seconds(31))
        #expect(scheduler.runningIDs.count == 3)
    }

    @Test func silentProbeDelaysOtherSessionsForHalfAMinute() throws {
        var scheduler = try scheduler()
        _ = try scheduler.perform(.start, at: .seconds(30))
        _ = try scheduler.report(.probe(endpoint), of: 1, at: .seconds(30))
        #expect(scheduler.nextDue(after: .seconds(30)) == .seconds(60))
        _ = scheduler.schedule(at: .seconds(59))
        #expect(scheduler.runningIDs.count == 1)
        _ = scheduler.schedule(at: .seconds(60))
        #expect(scheduler.runningIDs.count == 2, "the next run probes")
    }

    @Test func unreachableServerIsProbedEveryTenSeconds() throws {
        var scheduler = try scheduler(outage)
        for number in 1...100 {
            let time = DualInstant.seconds(10 * number)
            #expect(scheduler.nextDue(after: .seconds(10 * number - 5)) == time.uptime)
            _ = scheduler.schedule(at: time)
            let key = try #require(scheduler.sessions.first { $0.run != nil }).key
            _ = try scheduler.report(.probe(endpoint), of: key, at: time)
            _ = try scheduler.report(.endpointFailed(endpoint, outage), of: key, at: time)
            _ = try scheduler.report(.ended(.endpointsUnavailable(outage)), of: key, at: time)
        }
    }

    @Test func slowProbeIsFollowedByDelayOfSameLength() throws {
        var scheduler = try scheduler(outage)
        _ = scheduler.schedule(at: .seconds(10))
        _ = try scheduler.report(.probe(endpoint), of: 1, at: .seconds(10))
        _ = try scheduler.report(.endpointFailed(endpoint, outage), of: 1, at: .seconds(35))
        _ = try scheduler.report(.ended(.endpointsUnavailable(outage)), of: 1, at: .seconds(35))
        #expect(scheduler.nextDue(after: .seconds(35)) == .seconds(60))
    }

    @Test(arguments: [
        Command.perform(.run(), .one(.index(2))), .unblockAccount(name: "a"), .saveAccount(.memory("a")), .retryEndpoints(account: "a"),
        .setNetwork(.expensive),
    ])
    func userCallProbesImmediately(_ command: Command) throws {
        var scheduler = try scheduler()
        _ = try scheduler.perform(command, at: .seconds(3))
        #expect(scheduler.runningIDs.count == 1)
        if case .perform = command { #expect(scheduler.view(3)?.state == .running) }
        let key = try #require(scheduler.sessions.first { $0.run != nil }).key
        #expect(try scheduler.report(.probe(endpoint), of: key, at: .seconds(3)).result.isGranted)
        // The probe fails, so the endpoint stays unavailable for 60 s, twice as long as before.
        _ = try scheduler.report(.endpointFailed(endpoint, .broken), of: key, at: .seconds(4))
        _ = try scheduler.report(.ended(.endpointsUnavailable(.broken)), of: key, at: .seconds(4))
        #expect(scheduler.nextDue(after: .seconds(4)) == .seconds(64))
    }

    @Test func retryProbesImmediately() throws {
        var scheduler = try scheduler()
        _ = try scheduler.perform(.perform(.cancel(), .one(.index(1))), at: .seconds(3))
        _ = try scheduler.perform(.perform(.retry, .one(.index(1))), at: .seconds(3))
        #expect(scheduler.runningIDs.count == 1)
    }

    @Test func userCallOverridesRetryAfter() throws {
        var scheduler = try Scheduler.fixture(maxConcurrentSessions: 2)
        _ = try scheduler.perform(.enqueue([.draft(), .draft()]))
        _ = try scheduler.perform(.start)
        _ = try scheduler.report(.hostBusy(endpoint, .seconds(3_600)), of: 1)
        for key in SessionKey(1)...2 { _ = try scheduler.report(.ended(.endpointsUnavailable(.broken)), of: key) }
        #expect(scheduler.runningIDs.isEmpty)
        _ = try scheduler.perform(.perform(.run(), .one(.index(1))), at: .seconds(3))
        #expect(scheduler.runningIDs.count == 1, "one probe is enough for all sessions")
        #expect(scheduler.view(2)?.state == .running)
    }

    /// Returns a queue in which the sessions of two accounts wait for one day.
    private func waitingQueue() throws -> SchedulerFixture {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A")
        try queue.add("B", to: "b")
        for name in ["A", "B"] {
            try queue.report(name, .endpointFailed(endpoint, .broken))
            try queue.end(name, .backoff(.seconds(86_400), .broken))
        }
        #expect(queue.states == "A=waiting B=waiting")
        return queue
    }

    @Test(arguments: [
        Command.retryEndpoints(account: "a"), .unblockAccount(name: "a"), .saveAccount(.memory("a", at: "moved")),
        .saveAccount(.memory("a", user: "new")), .replaceAccount(.memory("a"), with: .memory("a", at: "moved")),
    ]) func endsRetryDelays(command: Command) throws {
        var queue = try waitingQueue()
        try queue.perform(command)
        #expect(queue.states == "A=running B=waiting")
    }

    /// An app may save an unchanged account often. Limits do not affect the reason for the delay.
    @Test(arguments: [nil, 7]) func savingSameEndpointsKeepsRetryDelays(limit: Int?) throws {
        var queue = try waitingQueue()
        var account = Account.memory("a")
        account.maxConcurrentSessions = limit
        try queue.perform(.saveAccount(account))
        #expect(queue.states == "A=waiting B=waiting")
    }

    @Test func savingBlockedAccountEndsRetryDelays() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A B")
        try queue.end("A", .backoff(.seconds(86_400), .broken))
        let refused = TransferError(.credentials, .credentialsRejected, "Wrong password.")
        try queue.end("B", .accountBlocked(refused, .memory("a")))
        #expect(queue.states == "A=waiting B=waiting")
        try queue.perform(.saveAccount(.memory("a")))
        #expect(queue.states == "A=running B=running")
    }

    @Test func networkEndsRetryDelays() throws {
        var queue = try waitingQueue()
        try queue.perform(.setNetwork(.unconstrained))
        #expect(queue.states == "A=waiting B=waiting", "the condition is the same as before")
        try queue.perform(.setNetwork(.unavailable))
        #expect(queue.states == "A=waiting B=waiting")
        guard case .retry = queue.waitReason(of: "A") else { throw TransferError.broken }
        try queue.perform(.setNetwork(.expensive))
        #expect(queue.states == "A=running B=running")
    }

    /// A new route can help only if the server could not be reached. Other failures keep their delays.
    @Test func newRouteEndsWaitsForUnreachableServers() throws {
        var queue = try SchedulerFixture(limit: 2)
        let other = Account.memory("b", at: "other")
        try queue.add("A")
        try queue.add("B", to: "b")
        try queue.perform(.saveAccount(other))
        for (name, endpoint, error) in [("A", endpoint, outage), ("B", other.endpoints[0], TransferError.broken)] {
            try queue.report(name, .endpointFailed(endpoint, error))
            try queue.end(name, .backoff(.seconds(86_400), error))
        }
        try queue.perform(.newRoute)
        #expect(queue.states == "A=running B=waiting")
    }

    @Test func newRouteKeepsDelayOfServer() throws {
        var queue = try SchedulerFixture()
        try queue.add("A")
        try queue.report("A", .hostBusy(endpoint, .seconds(3_600)))
        try queue.report("A", .endpointFailed(endpoint, outage))
        try queue.end("A", .backoff(.seconds(3_600), outage))
        try queue.perform(.newRoute)
        #expect(queue.states == "A=waiting")
    }

    @Test func networkKeepsDelayOfServer() throws {
        var queue = try SchedulerFixture()
        try queue.add("A")
        try queue.report("A", .hostBusy(endpoint, .seconds(3_600)))
        try queue.end("A", .backoff(.seconds(3_600), .broken))
        try queue.perform(.setNetwork(.expensive))
        #expect(queue.states == "A=waiting")
    }
}
