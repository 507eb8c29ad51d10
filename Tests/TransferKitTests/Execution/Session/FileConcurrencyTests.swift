import Testing
import TransferCore
import TransferKit

@Suite struct FileConcurrencyTests {
    private static let paths = [0, 0.01, 0.05, 0.2, 0.6].flatMap { roundTrip in
        [0, 0.05].filter { $0 == 0 || roundTrip > 0 }.flatMap { loss in
            [1, 4, 16, 64].map { SimulatedPath(roundTrip: roundTrip, loss: loss, workers: $0, service: 0.1) }
        }
    }

    @Test(arguments: paths) func findsBestNumberOfFiles(path: SimulatedPath) {
        let best = path.bestFixedRate
        let result = path.transfer(for: 60)
        #expect(result.rate(from: 0, to: 60) > best * 0.9)
        // This period covers several round trips, because responses arrive in bursts.
        #expect(result.rate(from: 5, to: 10) > best * 0.85)
        #expect(result.rate(from: 20, to: 60) > best * 0.94)
    }

    @Test(arguments: [0.0, 0.05, 0.2], [2, 5, 10, 30]) func staysBelowNumberAtWhichServerRefusesFiles(roundTrip: Double, maximum: Int) {
        let path = SimulatedPath(roundTrip: roundTrip, workers: 64, service: 0.1, maximumInFlight: maximum)
        let result = path.transfer(for: 100)
        // `bestFixedRate` ignores refusals: its number of files keeps the server busy, although the server refuses many of them.
        #expect(result.rate(from: 20, to: 100) > path.bestFixedRate * 0.7)
        let refused = result.refused.count { $0 > 20 }
        #expect(refused < result.completed.count / 10, "\(refused) of \(result.completed.count)")
    }

    @Test(arguments: [4, 16, 32]) func relievesOverloadedServer(capacity: Int) {
        let path = SimulatedPath(roundTrip: 0.05, workers: 64, service: 0.1, overload: capacity)
        let result = path.transfer(for: 100)
        #expect(result.rate(from: 20, to: 100) > path.bestFixedRate * 0.85)
        #expect(result.limit < max(capacity * 3, 16))
    }

    @Test func halvesLimitAfterManyFailures() {
        var concurrency = FileConcurrency(initial: 16, maximum: 64)
        for number in 0..<16 {
            concurrency.fileEnded(
                number % 3 == 0 ? .failed : .completed, began: .zero, now: .milliseconds(100 + number), reachesLimit: false)
        }
        #expect(concurrency.limit == 8)
    }

    /// All files in flight fail when a connection breaks. Some of them end after the limit was halved.
    @Test func brokenConnectionHalvesLimitOnce() {
        var concurrency = FileConcurrency(initial: 64, maximum: 64)
        for number in 0..<94 {
            concurrency.fileEnded(number < 30 ? .completed : .failed, began: .zero, now: .milliseconds(100 + number), reachesLimit: true)
        }
        for number in 0..<40 {
            concurrency.fileEnded(.completed, began: .milliseconds(300), now: .milliseconds(400 + number), reachesLimit: true)
        }
        #expect(concurrency.limit == 32)
    }

    /// A server that refuses one file in a hundred is not overloaded.
    @Test func toleratesOccasionalRefusals() {
        var path = SimulatedPath(roundTrip: 0.05, workers: 64, service: 0.1)
        let best = path.bestFixedRate
        path.refusals = 0.01
        #expect(path.transfer(for: 60).rate(from: 5, to: 60) > best * 0.85)
    }

    /// An error that concerns only one file, such as a locked upload, does not indicate an overloaded server.
    @Test func onlyOverloadCountsAsRefusal() {
        #expect(FileConcurrency.Outcome(TransferError(.transient, .serverUnavailable, "")) == .refused)
        #expect(FileConcurrency.Outcome(TransferError(.transient, .serverError, "", retryAfter: .seconds(1))) == .refused)
        #expect(FileConcurrency.Outcome(TransferError(.transient, .serverError, "")) == nil)
        #expect(FileConcurrency.Outcome(TransferError(.transient, .connectionLost, "")) == .failed)
        #expect(FileConcurrency.Outcome(TransferError(.permanent, .rejected, "")) == nil)
    }

    @Test func keepsInitialLimitOfTransportWithoutMaximum() {
        var concurrency = FileConcurrency(initial: 6, maximum: 6)
        for number in 0..<1_000 {
            concurrency.fileEnded(.completed, began: .milliseconds(number), now: .milliseconds(number + 6), reachesLimit: true)
            #expect(concurrency.limit <= 6)
        }
    }

    @Test func keepsLimitWhileTooFewFilesAreInFlight() {
        var concurrency = FileConcurrency(initial: 6, maximum: 64)
        for number in 0..<1_000 {
            concurrency.fileEnded(
                .completed, began: .milliseconds(100 * number), now: .milliseconds(100 * (number + 1)), reachesLimit: false)
        }
        #expect(concurrency.limit == 6)
    }
}
