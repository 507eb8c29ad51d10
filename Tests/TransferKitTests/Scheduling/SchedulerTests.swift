import Foundation
import Testing
import TransferCore
import TransferKit

@Suite struct SchedulerTests {
    @Test func doesNotDuplicateUnchangedDueTimes() throws {
        var scheduler = try Scheduler.fixture()
        var draft = SessionDraft.draft()
        draft.notBefore = Date(timeIntervalSince1970: 1_000_000)
        _ = try scheduler.perform(.enqueue([.draft(), draft]))
        _ = try scheduler.perform(.start)
        _ = try scheduler.report(.ended(.backoff(.seconds(1_000), .broken)), of: 1)
        for number in 0..<100 {
            let update = SessionUpdate(allowsExpensiveNetwork: number.isMultiple(of: 2))
            _ = try scheduler.perform(.perform(.update(update), .group(.all)))
        }
        #expect(scheduler.sessionIndex.due.count == 1 && scheduler.sessionIndex.dueDates.count == 1)
        // Undoing a change also restores the due time.
        _ = try scheduler.handle(.command(.perform(.run(), .group(.all))), at: .seconds(1))
        scheduler.undo()
        _ = scheduler.schedule(at: DualInstant(uptime: .seconds(1_000), date: Date(timeIntervalSince1970: 1_000_000)))
        scheduler.undo()
        #expect(scheduler.nextDue(after: .seconds(1)) == .seconds(61))
        _ = scheduler.schedule(at: DualInstant(uptime: .seconds(1_000), date: Date(timeIntervalSince1970: 1_000_000)))
        #expect(scheduler.runningIDs.count == 1 && scheduler.why(2, at: .seconds(1_000)) == .queueLimit)
    }

    /// An app can set a limit of 0 in a configuration.
    @Test(arguments: [0, -1, .min]) func limitBelowOneCountsAsOne(limit: Int) throws {
        var scheduler = try Scheduler.fixture(maxConcurrentSessions: limit)
        _ = try scheduler.perform(.enqueue([.draft(), .draft()]))
        _ = try scheduler.perform(.start)
        #expect(scheduler.runningIDs.count == 1 && scheduler.maxConcurrentSessions == 1)
    }

    @Test func noSessionStartsBeforeQueueStarts() throws {
        var scheduler = try Scheduler.fixture()
        #expect(try scheduler.perform(.enqueue([.draft()])).actions.isEmpty)
        #expect(scheduler.why(1, at: .start) == .queueNotRunning)
        #expect(try scheduler.perform(.start).actions.count == 1)
    }

    @Test func sessionsRunOneByOneInOrder() throws {
        var scheduler = try Scheduler.fixture()
        let drafts = (0..<5).map { SessionDraft.draft($0.isMultiple(of: 2) ? "a" : "b") }
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        for (index, draft) in drafts.enumerated() {
            #expect(scheduler.runningIDs == [draft.id])
            if index + 1 < drafts.count {
                #expect(scheduler.why(SessionKey(index + 2), at: .start) == .queueLimit)
            }
            let transaction = try scheduler.report(.ended(.finished(failure: nil, ignoresNewFiles: false)), of: SessionKey(index + 1))
            #expect(transaction.events.contains { if case .completed(draft.id) = $0 { true } else { false } })
        }
        #expect(scheduler.runningIDs.isEmpty)
        #expect(scheduler.isIdle(at: .start))
    }

    @Test func reportsIdleOnce() throws {
        var scheduler = try Scheduler.fixture()
        func isIdle(_ event: QueueEvent.Kind) -> Bool { if case .queueBecameIdle = event { true } else { false } }
        #expect(try scheduler.perform(.start).events.contains(where: isIdle))
        #expect(try !scheduler.perform(.start).events.contains(where: isIdle))
        _ = try scheduler.perform(.enqueue([.draft()]))
        #expect(try scheduler.report(.ended(.finished(failure: nil, ignoresNewFiles: false)), of: 1).events.contains(where: isIdle))
    }

    @Test func reportsIdleAgainAfterActivity() throws {
        var scheduler = try Scheduler.fixture()
        func isIdle(_ event: QueueEvent.Kind) -> Bool { if case .queueBecameIdle = event { true } else { false } }
        _ = try scheduler.perform(.enqueue([.draft()]))
        _ = try scheduler.perform(.perform(.hold, .one(.index(0))))
        #expect(try scheduler.perform(.start).events.contains(where: isIdle))
        // While a session waits for its start time, the queue is not idle. Holding the session makes the queue idle again.
        var later = SessionDraft.draft()
        later.notBefore = DualInstant.seconds(60).date
        _ = try scheduler.perform(.enqueue([later]))
        #expect(!scheduler.isIdle(at: .start))
        #expect(try scheduler.perform(.perform(.hold, .one(.index(1)))).events.contains(where: isIdle))
        _ = try scheduler.perform(.perform(.release, .one(.index(1))))
        #expect(!scheduler.isIdle(at: .start))
        #expect(try scheduler.perform(.perform(.hold, .one(.index(1)))).events.contains(where: isIdle))
    }

    @Test func completedFileResetsFailures() throws {
        var scheduler = try Scheduler.fixture(maxConcurrentSessions: 2)
        _ = try scheduler.perform(.enqueue([.draft(), .draft()]))
        _ = try scheduler.perform(.start)
        let endpoint = try #require(scheduler.accounts[1]?.account.endpoints.first)
        for _ in 0..<20 {
            for _ in 0..<4 { _ = try scheduler.report(.endpointFailed(endpoint, .broken), of: 1) }
            _ = try scheduler.report(.file(position: 0, .completed(TransferReceipt(bytes: 1), endpoint: endpoint)), of: 2)
        }
        #expect(scheduler.offers(endpoint))
        for _ in 0..<5 { _ = try scheduler.report(.endpointFailed(endpoint, .broken), of: 1) }
        #expect(!scheduler.offers(endpoint))
    }

    @Test func enqueuesLongChainOfDependencies() throws {
        var scheduler = try Scheduler.fixture()
        var drafts = (0..<20_000).map { _ in SessionDraft.draft() }
        for index in 1..<drafts.count { drafts[index].dependency = .after(drafts[index - 1].id) }
        _ = try scheduler.perform(.enqueue(drafts))
        #expect(scheduler.sessionIndex.count == 20_000)
        var ring = (0..<3).map { _ in SessionDraft.draft() }
        for index in 0..<3 { ring[index].dependency = .after(ring[(index + 1) % 3].id) }
        #expect(throws: QueueError.self) { _ = try scheduler.perform(.enqueue(ring)) }
        #expect(scheduler.sessionIndex.count == 20_000)
    }

    @Test func runAtOtherEndpointDoesNotProbe() throws {
        var scheduler = try Scheduler.fixture()
        _ = try scheduler.perform(.enqueue([.draft()]))
        _ = try scheduler.perform(.start)
        let endpoint = try #require(scheduler.accounts[1]?.account.endpoints.first)
        for _ in 0..<5 { _ = try scheduler.report(.endpointFailed(endpoint, .broken), of: 1) }
        _ = try scheduler.report(.ended(.endpointsUnavailable(.broken)), of: 1)
        #expect(scheduler.why(1, at: .start) == .endpointsUnavailable(until: DualInstant.seconds(30).date, .broken))
        let status = scheduler.status(at: .start)
        #expect(status.scheduled == 1 && status.nextDue == DualInstant.seconds(30).date)
        _ = try scheduler.perform(.start, at: .seconds(30))
        #expect(scheduler.runningIDs.count == 1, "this run may probe the endpoint")
        #expect(!scheduler.offers(endpoint, at: .seconds(30)), "no other run may use the endpoint")
        _ = try scheduler.report(.probe(endpoint), of: 1, at: .seconds(30))
        #expect(!scheduler.offers(endpoint, at: .seconds(59)), "no other run may use the endpoint")
        var other = endpoint
        other.address += "elsewhere/"
        _ = try scheduler.report(.endpoint(other), of: 1, at: .seconds(30))
        #expect(scheduler.offers(endpoint, at: .seconds(30)))
    }

    @Test func sessionFreesSlotDuringLongBackoff() throws {
        var scheduler = try Scheduler.fixture()
        let drafts = [SessionDraft.draft(), .draft()]
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        let transaction = try scheduler.report(.ended(.backoff(.seconds(10), .broken)), of: 1)
        #expect(transaction.actions.count == 1)
        #expect(scheduler.runningIDs == [drafts[1].id])
        #expect(scheduler.why(1, at: .start) == .retry(at: DualInstant.seconds(10).date))
        _ = try scheduler.report(.ended(.finished(failure: nil, ignoresNewFiles: false)), of: 2, at: .seconds(5))
        #expect(scheduler.runningIDs.isEmpty)
        #expect(!scheduler.isIdle(at: .seconds(5)), "a queue with a scheduled retry is not idle")
        #expect(scheduler.nextDue(after: .seconds(5)) == .seconds(10))
        #expect(scheduler.nextDue(after: .seconds(11)) == .seconds(11), "an overdue session is due immediately")
        let tick = scheduler.schedule(at: .seconds(10))
        #expect(tick.actions.count == 1)
        #expect(scheduler.runningIDs == [drafts[0].id])
    }

    @Test func interruptedSessionStartsFirstAfterStop() throws {
        var scheduler = try Scheduler.fixture()
        let drafts = [SessionDraft.draft(), .draft()]
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        _ = try scheduler.report(.ended(.backoff(.seconds(10), .broken)), of: 1)
        // The second session runs while the first session waits for its retry. Stopping the queue interrupts the second session.
        #expect(try scheduler.perform(.stop(.interrupt), at: .seconds(11)).actions == [.interrupt(2, run: 2)])
        #expect(scheduler.flags.mode == .stopping)
        let end = try scheduler.report(.ended(.interrupted), of: 2, at: .seconds(12))
        #expect(end.events.contains { if case .queueStopped = $0 { true } else { false } })
        _ = try scheduler.perform(.start, at: .seconds(13))
        #expect(scheduler.runningIDs == [drafts[1].id])
    }

    @Test func removedSessionKeepsSlotUntilRunEnds() throws {
        var scheduler = try Scheduler.fixture()
        let drafts = [SessionDraft.draft(), .draft()]
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        let transaction = try scheduler.perform(.perform(.remove(), .group(.sessions([drafts[0].id]))))
        #expect(transaction.actions == [.interrupt(1, run: 1), .forget(1)])
        #expect(scheduler.runningIDs.isEmpty)
        let late = try scheduler.handle(.report(RunEvent(key: 1, run: 1, content: .file(position: 0, .size(3)))), at: .start)
        #expect(late.writes.isEmpty)
        var ended = try scheduler.handle(.report(RunEvent(key: 1, run: 1, content: .ended(.interrupted))), at: .start)
        ended.append(scheduler.schedule(at: .start))
        #expect(scheduler.runningIDs == [drafts[1].id])
    }

    @Test func blockedAccountDoesNotAffectOtherAccount() throws {
        var scheduler = try Scheduler.fixture()
        let drafts = [SessionDraft.draft("a"), .draft("a"), .draft("b")]
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        let refused = TransferError(.credentials, .credentialsRejected, "The server refused the token.")
        _ = try scheduler.report(.ended(.accountBlocked(refused, .memory("a"))), of: 1)
        #expect(scheduler.runningIDs == [drafts[2].id])
        #expect(scheduler.why(2, at: .start) == .accountBlocked(refused))
        _ = try scheduler.report(.ended(.finished(failure: nil, ignoresNewFiles: false)), of: 3)
        #expect(scheduler.isIdle(at: .start))
        _ = try scheduler.perform(.unblockAccount(name: "a"))
        #expect(scheduler.runningIDs == [drafts[0].id])
    }

    @Test(arguments: [Command.unblockAccount(name: "a"), .saveAccount(.memory("a"))])
    func doesNotRequestCredentialsAgainAfterCommand(command: Command) throws {
        var scheduler = try Scheduler.fixture(maxConcurrentSessions: 3)
        _ = try scheduler.perform(.enqueue([.draft(), .draft(), .draft()]))
        _ = try scheduler.perform(.start)
        let refused = RunOutcome.accountBlocked(
            TransferError(.credentials, .credentialsRejected, "The server refused the token."), .memory("a"))
        func isCredentialsRequest(_ event: QueueEvent.Kind) -> Bool { if case .needsCredentials = event { true } else { false } }
        #expect(try scheduler.report(.ended(refused), of: 1).events.contains(where: isCredentialsRequest))
        _ = try scheduler.perform(command)
        for key in [SessionKey(2), 3] {
            #expect(try !scheduler.report(.ended(refused), of: key).events.contains(where: isCredentialsRequest))
            #expect(scheduler.accounts[1]?.block == nil)
        }
        #expect(scheduler.runningIDs.count == 3)
        // These runs began after the command, so they block the account again.
        #expect(try scheduler.report(.ended(refused), of: 2).events.contains(where: isCredentialsRequest))
        #expect(scheduler.accounts[1]?.block != nil)
    }

    @Test func editedAccountIsNotBlockedByEarlierRun() throws {
        var scheduler = try Scheduler.fixture()
        let draft = SessionDraft.draft("a")
        _ = try scheduler.perform(.enqueue([draft]))
        _ = try scheduler.perform(.start)
        _ = try scheduler.perform(.saveAccount(Account("a", endpoints: [Endpoint(transport: "memory", address: "memory://elsewhere/")])))
        let refused = TransferError(.credentials, .credentialsRejected, "The server refused the token.")
        _ = try scheduler.report(.ended(.accountBlocked(refused, .memory("a"))), of: 1)
        #expect(scheduler.runningIDs == [draft.id])
    }

    @Test func sessionWithoutTransportDoesNotDelayOtherSession() throws {
        var scheduler = try Scheduler.fixture()
        _ = try scheduler.perform(.saveAccount(Account("c", endpoints: [Endpoint(transport: "carrier-pigeon", address: "coop://c/")])))
        let drafts = [SessionDraft.draft("c"), .draft("a")]
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        #expect(scheduler.runningIDs == [drafts[1].id])
        #expect(scheduler.why(1, at: .start) == .transportMissing("carrier-pigeon"))
    }

    @Test func invalidCommandsChangeNothing() throws {
        var scheduler = try Scheduler.fixture()
        _ = try scheduler.perform(.enqueue([.draft()]))
        let known = try #require(scheduler.sessionIndex[1]?.id)
        let refusals: [(Command, QueueError.Code)] = [
            (.enqueue([.draft(), .draft("nobody")]), .noSuchAccount),
            (.perform(.remove(), .group(.sessions([known, SessionID()]))), .noSuchSession),
            (.deleteAccount(name: "a"), .accountInUse), (.deleteAccount(name: "nobody"), .noSuchAccount),
            (.saveAccount(Account("", endpoints: [])), .invalidAccount), (.saveAccount(Account("x", endpoints: [])), .invalidAccount),
        ]
        for (command, code) in refusals {
            let error = try #require(throws: QueueError.self) { try scheduler.handle(.command(command), at: .start) }
            #expect(error.code == code)
            #expect(Array(scheduler.sessionIndex.order) == [1])
        }
    }

    @Test func ignoresReportOfUnknownRun() throws {
        var scheduler = try Scheduler.fixture()
        _ = try scheduler.perform(.enqueue([.draft()]))
        _ = try scheduler.perform(.start)
        let stale = try scheduler.handle(
            .report(RunEvent(key: 1, run: 99, content: .ended(.finished(failure: nil, ignoresNewFiles: false)))), at: .start)
        #expect(stale.writes.isEmpty && stale.events.isEmpty)
        #expect(scheduler.sessionIndex[1]?.state == .running)
    }
}
