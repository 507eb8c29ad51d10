import Foundation
import Testing
import TransferCore
import TransferKit

/// Calls of `run` for a running session. The session's current run may already need to wait, but has not reported this yet.
@Suite struct RunWhileRunningTests {
    private static let waits: [RunOutcome] = [
        .backoff(.seconds(300), .broken), .endpointsUnavailable(.broken), .interrupted,
    ]

    @Test(arguments: waits) func runCallSkipsNextWaitOnce(_ outcome: RunOutcome) throws {
        var queue = try SchedulerFixture()
        try queue.add("A B")
        try queue.apply(.run(), "A")
        try queue.end("A", outcome)
        #expect(queue.states == "A=running B=waiting")
        try queue.end("A", .backoff(.seconds(300), .broken))
        #expect(queue.states == "A=waiting B=running")
        #expect(queue.waitReason(of: "A") == .retry(at: DualInstant.seconds(300).date))
    }

    @Test func probesEndpointsImmediately() throws {
        var queue = try SchedulerFixture()
        let endpoint = Account.memory("a").endpoints[0]
        try queue.add("A")
        for _ in 0..<5 { try queue.report("A", .endpointFailed(endpoint, .broken)) }
        try queue.apply(.run(), "A")
        try queue.end("A", .endpointsUnavailable(.broken))
        #expect(queue.states == "A=running")
        // The same applies if the failure is reported after the call.
        try queue.apply(.run(), "A")
        try queue.report("A", .endpointFailed(endpoint, .broken))
        try queue.end("A", .endpointsUnavailable(.broken))
        #expect(queue.states == "A=running")
        try queue.report("A", .endpointFailed(endpoint, .broken))
        try queue.end("A", .endpointsUnavailable(.broken))
        #expect(queue.states == "A=waiting")
    }

    @Test(arguments: [
        RunEvent.Content.connected, .file(position: 0, .completed(TransferReceipt(bytes: 1), endpoint: Account.memory("a").endpoints[0])),
    ])
    func runCallHasNoEffectAfterProgress(_ progress: RunEvent.Content) throws {
        var queue = try SchedulerFixture()
        try queue.add("A B")
        try queue.apply(.run(), "A")
        try queue.report("A", progress)
        try queue.end("A", .backoff(.seconds(300), .broken))
        #expect(queue.states == "A=waiting B=running")
    }

    @Test func sessionRunsFirstOnceThereIsSpace() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B C")
        try queue.apply(.runNext, "C")
        try queue.apply(.run(), "A")
        try queue.end("A", .noSpace(TransferError(.noSpace, .diskFull, "Full.")))
        #expect(queue.states == "A=waiting B=waiting C=running")
        try queue.advance(seconds: 30)
        try queue.end("C")
        #expect(queue.states == "A=running B=waiting C=completed")
    }

    @Test func laterYieldOverridesRunCall() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B")
        try queue.apply(.run(), "A")
        try queue.apply(.yield, "A")
        try queue.end("A", .backoff(.seconds(300), .broken))
        #expect(queue.states == "A=waiting B=running")
    }

    @Test func reportsTimeOfNextAttempt() throws {
        var scheduler = try Scheduler.fixture()
        _ = try scheduler.perform(.enqueue([.draft()]))
        _ = try scheduler.perform(.start)
        _ = try scheduler.perform(.perform(.run(), .one(.index(0))), at: .seconds(3))
        let transaction = try scheduler.report(.ended(.backoff(.seconds(300), .broken)), of: 1, at: .seconds(4))
        let times = transaction.events.compactMap { if case .attemptFailed(_, _, let retryAt) = $0 { retryAt } else { nil } }
        #expect(times == [DualInstant.seconds(4).date])
        #expect(transaction.actions.contains(.skipBackoff(1)), "the session's files no longer wait, either")
    }

    /// The call has ended the waits of files in the session's run, so it does not also end the wait after that run.
    @Test func runCallEndsOneWait() throws {
        var scheduler = try Scheduler.fixture()
        _ = try scheduler.perform(.enqueue([.draft()]))
        _ = try scheduler.perform(.start)
        let request = try scheduler.perform(.perform(.run(), .one(.index(0))), at: .seconds(3))
        #expect(request.actions.contains(.skipBackoff(1)))
        _ = try scheduler.report(.waitsSkipped, of: 1, at: .seconds(4))
        let end = try scheduler.report(.ended(.backoff(.seconds(300), .broken)), of: 1, at: .seconds(5))
        let times = end.events.compactMap { if case .attemptFailed(_, _, let retryAt) = $0 { retryAt } else { nil } }
        #expect(times == [DualInstant.seconds(305).date])
    }
}
