import Testing
import TransferCore
import TransferKit

@Suite struct DependentReleaseTests {
    @Test func releasesManyDependentsInBatches() throws {
        var scheduler = try Scheduler.fixture()
        _ = try enqueue(25_000, &scheduler)
        _ = try scheduler.perform(.start)
        let transaction = try scheduler.report(.ended(.finished(failure: nil, ignoresNewFiles: false)), of: 1)
        try expectBatches(&scheduler, after: transaction)
        #expect(
            scheduler.sessions.dropFirst().allSatisfy {
                if case .after = scheduler.why($0.key, at: .start) { false } else { true }
            })
    }

    /// The outcome of a quarantined session is unknown, so the scheduler holds the dependents of the session.
    @Test func holdsManyDependentsOfQuarantinedSessionInBatches() throws {
        var scheduler = try Scheduler.fixture()
        let first = try enqueue(25_000, &scheduler)
        _ = try scheduler.perform(.start)
        try expectBatches(&scheduler, after: try scheduler.perform(.quarantine(first, "for a test")))
        #expect(scheduler.sessions.count == 25_000 && scheduler.sessions.allSatisfy { $0.state == .held })
    }

    /// The first transaction removes the session, so no process finds it after a kill. The other transactions only release dependents.
    @Test(arguments: [false, true]) func releasesManyDependentsAfterRemoval(_ isWithdrawal: Bool) throws {
        var scheduler = try Scheduler.fixture()
        let first = try enqueue(25_000, &scheduler)
        _ = try scheduler.perform(.start)
        _ = try scheduler.perform(.perform(.hold, .one(.id(first))))
        _ = try scheduler.report(.ended(.interrupted), of: 1)
        let command = isWithdrawal ? Command.withdraw(first) : .perform(.remove(isForced: true), .one(.id(first)))
        let transaction = try scheduler.perform(command)
        #expect(scheduler.view(1) == nil && scheduler.sessions.count == 25_000)
        try expectBatches(&scheduler, after: transaction)
        #expect(
            scheduler.sessions.allSatisfy {
                if case .after = scheduler.why($0.key, at: .start) { false } else { $0.state != .held }
            })
    }

    /// Enqueues a session and `dependents` sessions that depend on it. Returns the ID of the first session.
    private func enqueue(_ dependents: Int, _ scheduler: inout Scheduler) throws -> SessionID {
        let first = SessionDraft.draft()
        let dependents = (0..<dependents).map { _ in
            var draft = SessionDraft.draft("b")
            draft.dependency = .after(first.id)
            return draft
        }
        _ = try scheduler.perform(.enqueue([first]))
        _ = try scheduler.perform(.enqueue(dependents))
        return first.id
    }

    /// Expects that the next three transactions, including the given one, release or hold 25,000 sessions.
    private func expectBatches(_ scheduler: inout Scheduler, after transaction: Transaction) throws {
        var transaction = transaction
        var batches: [Int] = []
        while true {
            batches.append(transaction.writes.count { if case .schedule = $0 { true } else { false } })
            #expect((scheduler.remaining(at: .start) == 0) == scheduler.isIdle(at: .start))
            #expect(scheduler.sessions.contains { $0.state == .held } || !scheduler.isIdle(at: .start))
            guard scheduler.nextDue(after: .start) == .zero else { break }
            transaction = scheduler.schedule(at: .start)
            scheduler.commit()
        }
        // The counts include the session that ended and the next session, which starts.
        #expect(batches.allSatisfy { $0 <= 10_002 } && batches.reduce(0, +) <= 25_004 && batches.count == 3, "\(batches)")
    }
}
