import Testing
import TransferCore
import TransferKit

/// The scheduler keeps the waiting sessions of an account in lines. The scheduler sets a line aside while none of the line's sessions can start, and
/// recalls the line when this may have changed.
@Suite struct ManyAccountsTests {
    private static let outage = TransferError(.unreachable, .connectionRefused, "No server responds.")
    private static let count = 1_000

    private static func endpoint(_ number: Int) -> Endpoint { Account.memory("\(number)").endpoints[0] }

    /// Returns a scheduler with 1,000 accounts whose endpoints are unavailable. One session of each account waits for its endpoint.
    /// Another session of the first account runs.
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

    @Test(arguments: [
        RunEvent.Content.endpointFailed(endpoint(1), outage), .endpointWorks(endpoint(1)), .probe(endpoint(1)), .endpoint(endpoint(1)),
        .hostBusy(endpoint(1), .seconds(100)),
    ]) func reportExaminesOnlyLinesOfItsEndpoint(content: RunEvent.Content) throws {
        var scheduler = try scheduler()
        _ = try scheduler.handle(report(content, of: 1, scheduler), at: .seconds(1))
        #expect(scheduler.sessionIndex.linesAside >= Self.count - 1)
    }

    /// Each account has a running session and a waiting session, whose line is set aside because the account's limit is one session.
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
        // Commands for one account also leave the lines of other accounts aside.
        _ = try scheduler.perform(.enqueue([.draft("9")]))
        _ = try scheduler.perform(.setMaxConcurrentSessions(2, account: "8"))
        #expect(scheduler.sessionIndex.linesAside >= Self.count - 2)
        #expect(scheduler.runningIDs.count == Self.count + 1)
    }

    @Test func recalledLineLeavesNoDueTime() throws {
        var scheduler = try scheduler()
        #expect(scheduler.nextDue(after: .start) == .seconds(10))
        for number in 1...Self.count { _ = try scheduler.perform(.retryEndpoints(account: "\(number)"), at: .seconds(5)) }
        #expect(scheduler.sessionIndex.linesAside == 0 && scheduler.runningIDs.count == Self.count + 1)
        #expect(scheduler.nextDue(after: .seconds(5)) == nil)
    }

    // MARK: Lines that can't start

    private static let crowd = 10_000

    /// The reason why an account of ``crowdedScheduler(_:)`` can't start a session.
    enum Obstacle: CaseIterable {
        case block, outage
    }

    /// Returns the scheduler of a started queue with one slot and 10,000 accounts, with two sessions each. Only the first account can
    /// start sessions, and its first session runs.
    private func crowdedScheduler(_ obstacle: Obstacle) throws -> Scheduler {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"]))
        for number in 1...Self.crowd {
            let block = obstacle == .block && number > 1 ? AccountBlock(error: Self.outage) : nil
            scheduler.load(AccountKey(number), Scheduler.AccountEntry(account: .memory("\(number)"), block: block))
        }
        let numbers = Array(1...Self.crowd)
        _ = try scheduler.perform(.enqueue((numbers + numbers).map { .draft("\($0)") }))
        _ = try scheduler.perform(.start)
        if obstacle == .outage {
            let run = try #require(scheduler.view(1)?.run)
            for number in 2...Self.crowd {
                for _ in 0..<5 {
                    let failure = RunEvent(key: 1, run: run, content: .endpointFailed(Self.endpoint(number), Self.outage))
                    _ = try scheduler.handle(.report(failure), at: .start)
                }
            }
        }
        examineAll(&scheduler)
        #expect(scheduler.runningIDs.count == 1)
        return scheduler
    }

    /// Completes the examination of all lines. One transaction examines only some of them.
    private func examineAll(_ scheduler: inout Scheduler) {
        for _ in 0...10 {
            _ = scheduler.schedule(at: .start)
            scheduler.commit()
        }
    }

    private func end(_ key: SessionKey, _ scheduler: inout Scheduler) throws {
        _ = try scheduler.report(.ended(.finished(failure: nil, ignoresNewFiles: false)), of: key)
    }

    @Test(arguments: Obstacle.allCases) func reasonVisitsOnlyLinesThatCanStart(obstacle: Obstacle) throws {
        var scheduler = try crowdedScheduler(obstacle)
        _ = try scheduler.perform(.enqueue([.draft("1")]))
        let (second, third) = (SessionKey(Self.crowd + 1), SessionKey(2 * Self.crowd + 1))
        let secondID = try #require(scheduler.sessionIndex[second]?.id)
        #expect(scheduler.why(second, at: .start) == .queueLimit)
        #expect(scheduler.why(third, at: .start) == .order(after: secondID))
        #expect(scheduler.sessionIndex.readyLines == 1)
        for key in [second, third] {
            let entry = try #require(scheduler.sessionIndex[key])
            var visits = 0
            _ = scheduler.sessionIndex.last(before: entry, at: .zero) { _ in
                visits += 1
                return false
            }
            #expect(visits <= 2)
        }
        // After the outage, the sessions of the other accounts can start again, so the second session waits for the session just before it.
        guard obstacle == .outage else { return }
        let last = try #require(scheduler.sessionIndex[second - 1]?.id)
        #expect(scheduler.why(second, at: .seconds(10)) == .order(after: last), "before the transaction that recalls the lines")
        _ = scheduler.schedule(at: .seconds(10))
        #expect(scheduler.why(second, at: .seconds(10)) == .order(after: last))
    }

    @Test func idleCheckVisitsNoBlockedLine() throws {
        var scheduler = try crowdedScheduler(.block)
        try end(1, &scheduler)
        #expect(scheduler.view(SessionKey(Self.crowd + 1))?.state == .running)
        try end(SessionKey(Self.crowd + 1), &scheduler)
        #expect(scheduler.isIdle(at: .start) && scheduler.remaining(at: .start) == 0)
        #expect(Array(scheduler.sessionIndex.startableLines).isEmpty)
        _ = try scheduler.perform(.enqueue([.draft("7")]))
        #expect(scheduler.isIdle(at: .start) && Array(scheduler.sessionIndex.startableLines).isEmpty)
        _ = try scheduler.perform(.unblockAccount(name: "7"))
        #expect(!scheduler.isIdle(at: .start) && scheduler.remaining(at: .start) == 3)
        #expect(Array(scheduler.sessionIndex.startableLines).count == 1 && scheduler.sessionIndex.linesAside == Self.crowd - 2)
    }

    @Test func idleCheckVisitsNoBlockedLineOfLaterSessions() throws {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"]))
        let drafts = (1...Self.crowd).map { number in
            var draft = SessionDraft.draft("\(number)")
            draft.notBefore = DualInstant.seconds(60).date
            return draft
        }
        for number in 1...Self.crowd {
            scheduler.load(
                AccountKey(number), Scheduler.AccountEntry(account: .memory("\(number)"), block: AccountBlock(error: Self.outage)))
        }
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        #expect(scheduler.isIdle(at: .start))
        examineAll(&scheduler)
        #expect(scheduler.isIdle(at: .start) && Array(scheduler.sessionIndex.startableLines).isEmpty)
        _ = try scheduler.perform(.unblockAccount(name: "7"))
        #expect(!scheduler.isIdle(at: .start) && scheduler.remaining(at: .start) == 1)
        #expect(Array(scheduler.sessionIndex.startableLines).count == 1)
        _ = try scheduler.perform(.start, at: .seconds(60))
        #expect(scheduler.runningIDs == [drafts[6].id])
    }

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
