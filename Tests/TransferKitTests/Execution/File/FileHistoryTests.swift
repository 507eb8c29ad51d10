import Testing
import TransferCore
import TransferKit

@Suite struct FileHistoryTests {
    private let endpoint = Endpoint(transport: "memory", address: "memory://a/")
    private let other = Endpoint(transport: "memory", address: "memory://b/")
    private let step: Int64 = 25 << 10

    @Test func smallGainsOfSeveralAttemptsResetFailures() {
        var history = FileHistory()
        var failureCounts: [Int] = []
        for attempt in 0..<Int64(9) {
            history.progressed(to: (attempt + 1) * step, of: nil, at: endpoint, from: attempt * step)
            history.failed(.broken, at: endpoint, uptime: .seconds(attempt))
            failureCounts.append(history.failures)
        }
        // Every third attempt completes 64 KiB, which resets the failures.
        #expect(failureCounts == [1, 2, 1, 2, 3, 1, 2, 3, 1])
    }

    @Test func smallPartOfLargeFileIsProgress() {
        var history = FileHistory()
        for attempt in 0..<Int64(100) {
            history.progressed(to: (attempt + 1) * 100_000, of: 1 << 40, at: endpoint, from: attempt * 100_000)
            history.failed(.broken, at: endpoint, uptime: .seconds(attempt))
            #expect(history.failures == 1)
        }
    }

    @Test func countsConfirmedBytesOnce() {
        var history = FileHistory()
        history.progressed(to: 2 << 20, of: nil, at: endpoint, from: 0)
        history.failed(.broken, at: endpoint, uptime: .zero)
        // The server lost the end of the upload. Sending the same bytes again is not progress.
        history.progressed(to: 2 << 20, of: nil, at: endpoint, from: 0)
        history.failed(.broken, at: endpoint, uptime: .zero)
        history.progressed(to: step, of: nil, at: other, from: 0)
        #expect(history.failures == 2)
        history.startedOver(becauseSourceChanged: false)
        history.progressed(to: step, of: nil, at: endpoint, from: 0)
        #expect(history.failures == 2)
        history.progressed(to: 3 * step, of: nil, at: endpoint, from: step)
        #expect(history.failures == 0)
    }

    @Test func countsNoOutageWithoutRoute() {
        let local = Endpoint(transport: "memory", address: "memory://127.0.0.1/")
        let (unreachable, routes) = (TransferError(.unreachable, .connectionRefused, "No route."), RouteGap())
        var history = FileHistory()
        routes.begin(at: .zero)
        for attempt in 0..<5 {
            for each in [endpoint, local] { history.failed(unreachable, at: each, uptime: .seconds(attempt * 100)) }
        }
        func isTooLong(_ each: Endpoint, _ limit: Int, at seconds: Int) -> Bool {
            let (limit, uptime) = (Duration.seconds(limit), Duration.seconds(seconds))
            let mayFallBack = history.mayFallBack(from: each, after: limit, uptime: uptime, routes)
            #expect(history.isOutage(of: each, longerThan: limit, uptime: uptime, routes) == mayFallBack)
            return mayFallBack
        }
        #expect(!isTooLong(endpoint, 0, at: 500))
        // A loopback address needs no route.
        #expect(isTooLong(local, 0, at: 500))
        routes.end(at: .seconds(500))
        // A second report that a route exists changes nothing.
        routes.end(at: .seconds(505))
        #expect(!isTooLong(endpoint, 60, at: 559) && isTooLong(endpoint, 60, at: 560) && isTooLong(local, 60, at: 500))
        // A second gap does not reset the outage time before the gap.
        routes.begin(at: .seconds(540))
        routes.end(at: .seconds(541))
        #expect(!isTooLong(endpoint, 60, at: 560) && isTooLong(endpoint, 60, at: 561))
    }

    @Test func waitsForEndpointWithBytesWhileRouteIsMissing() {
        let account = Account("a", endpoints: [endpoint, other])
        let availability = EndpointAvailability(account: account, registered: [endpoint, other], available: [other])
        let (unreachable, routes) = (TransferError(.unreachable, .connectionRefused, "No route."), RouteGap())
        var history = FileHistory()
        history.failed(unreachable, at: endpoint, uptime: .zero)
        func choice(at seconds: Int) -> EndpointChoice {
            EndpointChoice(availability, kept: [endpoint.address: 5], history: history, uptime: .seconds(seconds), routes: routes)
        }
        #expect(choice(at: 60) == .use(other))
        routes.begin(at: .seconds(20))
        #expect(choice(at: 100) == .wait(endpoint, until: .seconds(160)))
        routes.end(at: .seconds(100))
        #expect(choice(at: 139) == .wait(endpoint, until: .seconds(140)) && choice(at: 140) == .use(other))
    }

    /// The queue does not validate stored accounts, so a stored delay can have any value.
    @Test func waitsForEndpointDespiteLargestFallbackDelay() {
        let account = Account("a", endpoints: [endpoint, other], fallbackAfter: .largest)
        let availability = EndpointAvailability(account: account, registered: [endpoint, other], available: [other])
        let (unreachable, routes) = (TransferError(.unreachable, .connectionRefused, "No route."), RouteGap())
        var history = FileHistory()
        history.failed(unreachable, at: endpoint, uptime: .seconds(1))
        func waits() -> Bool {
            let choice = EndpointChoice(
                availability, kept: [endpoint.address: 5], history: history, uptime: .seconds(3), routes: routes)
            guard case .wait(endpoint, let until) = choice else { return false }
            return until > .seconds(3)
        }
        #expect(waits())
        routes.begin(at: .seconds(2))
        #expect(waits())
    }

    /// Each restarted upload sends only as many bytes as the first one. These bytes are progress, but permit no more than five restarts.
    @Test func limitsRestarts() {
        var history = FileHistory()
        var restarts = 0
        for _ in 0..<100 {
            history.progressed(to: 2 << 20, of: nil, at: endpoint, from: 0)
            guard history.mayRestart else { break }
            history.startedOver(becauseSourceChanged: false)
            restarts += 1
        }
        #expect(restarts == 5)
        #expect(!history.mayRestart)
        // This upload sends more bytes than any earlier upload.
        history.progressed(to: 4 << 20, of: nil, at: endpoint, from: 2 << 20)
        #expect(history.mayRestart)
    }

    private let unavailable = TransferError(.transient, .serverUnavailable, "503")

    private func fail(_ history: inout FileHistory, responses: Int, isShared: Bool = false, with error: TransferError? = nil) {
        var series = EndpointState.FailureSeries()
        (series.responses, series.isShared) = (responses, isShared)
        history.failed(error ?? unavailable, at: endpoint, uptime: .zero, liveness: series)
    }

    @Test func countsOutageAsFailureOnlyIfOtherFilesAreServed() {
        var history = FileHistory()
        fail(&history, responses: 4)
        #expect(history.failures == 0)
        fail(&history, responses: 5)
        #expect(history.failures == 1, "the server has since served another file")
        for _ in 0..<20 { fail(&history, responses: 5) }
        #expect(history.failures == 1)
        fail(&history, responses: 6, isShared: true)
        #expect(history.failures == 1)
    }

    @Test(arguments: [true, false]) func ownResponsesDoNotTurnOutageIntoFailure(isBroken: Bool) {
        var history = FileHistory()
        fail(&history, responses: 0)
        history.began()
        history.ended(at: endpoint, wasServed: true, moved: 50 << 20)
        history.progressed(to: 50 << 20, of: nil, at: endpoint, from: 0)
        if isBroken { fail(&history, responses: 0, with: .broken) }
        let failures = history.failures
        for _ in 0..<20 {
            history.began()
            fail(&history, responses: 1)
        }
        #expect(history.failures == failures)
    }

    @Test(arguments: [0, 1 << 20, 1 << 20 + 1]) func attemptIsCostlyAboveOneMebibyte(moved: Int64) {
        var history = FileHistory()
        history.ended(at: endpoint, wasServed: false, moved: moved)
        #expect(history.isCostly == (moved > 1 << 20))
        history.began()
        #expect(!history.isCostly)
    }

    /// After an attempt that sent more than 1 MiB, the endpoint may have kept the bytes, even if a later attempt sends none.
    @Test(arguments: [(1 << 20, true, false), (1 << 20 + 1, true, true), (1 << 20 + 1, false, false)])
    func remembersUnconfirmedBytes(moved: Int64, canResume: Bool, areKept: Bool) {
        var history = FileHistory()
        history.ended(at: endpoint, wasServed: false, moved: moved, canResume: canResume)
        history.began()
        history.ended(at: endpoint, wasServed: false, moved: 0, canResume: canResume)
        #expect(history.unconfirmed == (areKept ? [endpoint] : []))
        history.startedOver(becauseSourceChanged: false)
        #expect(history.unconfirmed.isEmpty)
    }

    @Test func servedAttemptIsNotOutage() {
        var history = FileHistory()
        for _ in 0..<3 {
            history.began()
            history.ended(at: endpoint, wasServed: true, moved: 0)
            fail(&history, responses: 1)
        }
        #expect(history.failures == 3)
    }
}
