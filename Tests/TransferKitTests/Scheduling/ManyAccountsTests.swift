import Testing
import TransferCore
import TransferKit

/// The work for reports about endpoints, if the endpoints of many accounts are down at the same time. The scheduler keeps the waiting
/// sessions of an account in lines. It sets a line aside while none of the line's sessions can start, and recalls the line when this may
/// have changed.
@Suite struct ManyAccountsTests {
    private static let outage = TransferError(.unreachable, .connectionRefused, "No server answers.")
    private static let count = 1_000

    private static func endpoint(_ number: Int) -> Endpoint { Account.memory("\(number)").endpoints[0] }

    /// A scheduler with 1,000 accounts whose endpoints are unavailable. One session of each account waits for its endpoint. Another session of
    /// the first account runs.
    private func scheduler() throws -> Scheduler {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"], maxConcurrentSessions: Self.count + 1))
        for number in 1...Self.count { _ = try scheduler.perform(.saveAccount(.memory("\(number)"))) }
        _ = try scheduler.perform(.enqueue(([1] + Array(1...Self.count)).map { .draft("\($0)") }))
        _ = try scheduler.perform(.start)
        for number in 1...Self.count {
            for _ in 0..<5 {
                _ = try scheduler.handle(
                    report(.endpointFailed(Self.endpoint(number), Self.outage), of: SessionKey(number + 1), scheduler), at: .start)
            }
            _ = try scheduler.handle(report(.ended(.endpointsUnavailable(Self.outage)), of: SessionKey(number + 1), scheduler), at: .start)
        }
        _ = scheduler.schedule(at: .start)
        scheduler.commit()
        #expect(scheduler.runningIDs.count == 1 && scheduler.sessionIndex.linesAside == Self.count)
        return scheduler
    }

    private func report(_ content: RunEvent.Content, of key: SessionKey, _ scheduler: Scheduler) -> Input {
        .report(RunEvent(key: key, run: scheduler.view(key)?.run ?? 0, content: content))
    }

    /// A report about an endpoint recalls only the line of the account with this endpoint. All other lines stay set aside.
    @Test(arguments: [
        RunEvent.Content.endpointFailed(endpoint(1), outage), .endpointWorks(endpoint(1)), .probe(endpoint(1)), .endpoint(endpoint(1)),
        .hostBusy(endpoint(1), .seconds(100)),
    ]) func reportExaminesOnlyLinesOfItsEndpoint(content: RunEvent.Content) throws {
        var scheduler = try scheduler()
        _ = try scheduler.handle(report(content, of: 1, scheduler), at: .seconds(1))
        #expect(scheduler.sessionIndex.linesAside >= Self.count - 1)
    }

    /// Each account has a running session and a waiting session, which its limit of one session sets aside. The end of a session recalls only the
    /// line of its account.
    @Test func endOfSessionExaminesOnlyLinesOfItsAccount() throws {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"], maxConcurrentSessions: 2 * Self.count))
        for number in 1...Self.count {
            var account = Account.memory("\(number)")
            account.maxConcurrentSessions = 1
            _ = try scheduler.perform(.saveAccount(account))
        }
        _ = try scheduler.perform(.enqueue((Array(1...Self.count) + Array(1...Self.count)).map { .draft("\($0)") }))
        _ = try scheduler.perform(.start)
        #expect(scheduler.runningIDs.count == Self.count && scheduler.sessionIndex.linesAside == Self.count)
        _ = try scheduler.handle(report(.ended(.finished(failure: nil, ignoresNewFiles: false)), of: 7, scheduler), at: .start)
        #expect(scheduler.sessionIndex.linesAside == Self.count - 1)
        _ = scheduler.schedule(at: .start)
        scheduler.commit()
        #expect(scheduler.view(SessionKey(Self.count + 7))?.state == .running)
        // Commands for one account leave the lines of others aside, too.
        _ = try scheduler.perform(.enqueue([.draft("9")]))
        _ = try scheduler.perform(.setMaxConcurrentSessions(2, account: "8"))
        #expect(scheduler.sessionIndex.linesAside >= Self.count - 2)
        #expect(scheduler.runningIDs.count == Self.count + 1)
    }

    /// A line that is set aside has a due time, which no longer exists after the line was recalled.
    @Test func recalledLineLeavesNoDueTime() throws {
        var scheduler = try scheduler()
        #expect(scheduler.nextDue(after: .start) == .seconds(10))
        for number in 1...Self.count { _ = try scheduler.perform(.retryEndpoints(account: "\(number)"), at: .seconds(5)) }
        #expect(scheduler.sessionIndex.linesAside == 0 && scheduler.runningIDs.count == Self.count + 1)
        #expect(scheduler.nextDue(after: .seconds(5)) == nil)
    }

    /// The delay that a host asked for ends for all accounts with endpoints on that host.
    @Test func retryEndsDelayOfSharedHost() throws {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"], maxConcurrentSessions: 3))
        for name in ["a", "b"] {
            let endpoint = Endpoint(transport: "memory", address: "memory://shared/\(name)")
            _ = try scheduler.perform(.saveAccount(Account(name, endpoints: [endpoint])))
        }
        _ = try scheduler.perform(.enqueue([.draft("a")]))
        _ = try scheduler.perform(.start)
        let busy = RunEvent.Content.hostBusy(Endpoint(transport: "memory", address: "memory://shared/a"), .seconds(100))
        _ = try scheduler.report(busy, of: 1)
        _ = try scheduler.perform(.enqueue([.draft("b")]))
        #expect(scheduler.runningIDs.count == 1)
        _ = try scheduler.perform(.retryEndpoints(account: "a"), at: .seconds(1))
        #expect(scheduler.runningIDs.count == 2)
    }
}
