import TransferKit

/// A network path to a server that receives small files, simulated in virtual time.
struct SimulatedPath: Sendable {
    /// The round-trip time, in seconds.
    var roundTrip: Double
    /// The share of lost packets. A loss delays a file by 200 ms or 1.5 round trips, whichever is longer.
    var loss = 0.0
    /// The number of files that the server handles at the same time.
    var workers: Int
    /// The time that the server needs for a file, in seconds.
    var service: Double
    /// The share of files that the server refuses regardless of its load.
    var refusals = 0.0
    /// While more files than this number are in flight, the server refuses files at random, and accepts about this number.
    var maximumInFlight = Int.max
    /// While the server handles more files than this number, each file takes longer, and fewer files complete per second.
    var overload = Int.max

    struct Result {
        /// The times at which files were completed, in seconds.
        var completed: [Double] = []
        /// The times at which the server refused files, in seconds.
        var refused: [Double] = []
        /// The number of files that may be in flight at the end.
        var limit = 0

        func rate(from start: Double, to end: Double) -> Double {
            Double(completed.count { $0 >= start && $0 < end }) / (end - start)
        }
    }

    /// The highest rate with a fixed number of files in flight, in files per second.
    var bestFixedRate: Double {
        let numbers = [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64]
        return numbers.map { transfer(for: 12, fixed: $0).rate(from: 2, to: 12) }.max() ?? 0
    }

    /// Transfers files for a number of seconds.
    ///
    /// - Parameter fixed: The number of files in flight; nil to adapt the number.
    func transfer(for seconds: Double, fixed: Int? = nil, seed: UInt64 = 3) -> Result {
        var simulation = Simulation(path: self, fixed: fixed, random: SplitMix64(seed: seed))
        simulation.run(for: seconds)
        return simulation.result
    }
}

private struct Simulation {
    private enum Event { case arrival, serviceEnd, response(isAccepted: Bool), retry }

    let path: SimulatedPath
    let fixed: Int?
    var random: SplitMix64
    var result = SimulatedPath.Result()

    private var concurrency = FileConcurrency(initial: 6, maximum: 64)
    private var now = 0.0
    private var events: [(time: Double, number: Int, event: Event, began: Double)] = []
    private var number = 0
    private var inFlight = 0
    private var waitingForRetry = 0
    private var atServer = 0
    private var busyWorkers = 0
    private var queue: [Double] = []

    init(path: SimulatedPath, fixed: Int?, random: SplitMix64) {
        (self.path, self.fixed, self.random) = (path, fixed, random)
    }

    private var limit: Int { fixed ?? concurrency.limit }

    mutating func run(for seconds: Double) {
        startFiles()
        while let next = takeNext(), next.time <= seconds {
            now = next.time
            handle(next.event, began: next.began)
        }
        result.limit = limit
    }

    private mutating func handle(_ event: Event, began: Double) {
        switch event {
        case .arrival:
            if isRefused() { return schedule(.response(isAccepted: false), after: oneWay(), began: began) }
            atServer += 1
            if busyWorkers < path.workers { serve(began) } else { queue.append(began) }
        case .serviceEnd:
            (atServer, busyWorkers) = (atServer - 1, busyWorkers - 1)
            schedule(.response(isAccepted: true), after: oneWay(), began: began)
            if !queue.isEmpty { serve(queue.removeFirst()) }
        case .response(let isAccepted):
            inFlight -= 1
            if isAccepted {
                result.completed.append(now)
            } else {
                result.refused.append(now)
                waitingForRetry += 1
                schedule(.retry, after: Double.random(in: 0.5...1.5, using: &random), began: now)
            }
            concurrency.fileEnded(
                isAccepted ? .completed : .refused, began: .seconds(began), now: .seconds(now), reachesLimit: waitingForRetry < 16)
            startFiles()
        case .retry:
            waitingForRetry -= 1
            startFiles()
        }
    }

    private mutating func isRefused() -> Bool {
        if Double.random(in: 0..<1, using: &random) < path.refusals { return true }
        return inFlight > path.maximumInFlight && Int.random(in: 0..<inFlight, using: &random) >= path.maximumInFlight
    }

    private mutating func startFiles() {
        while inFlight < limit, waitingForRetry < 16 {
            inFlight += 1
            schedule(.arrival, after: oneWay(), began: now)
        }
    }

    private mutating func serve(_ began: Double) {
        busyWorkers += 1
        let excess = max(1, Double(atServer) / Double(path.overload))
        schedule(
            .serviceEnd, after: path.service * Double.random(in: 0.7...1.3, using: &random) * excess * excess.squareRoot(), began: began)
    }

    private mutating func oneWay() -> Double {
        let isLost = Double.random(in: 0..<1, using: &random) < path.loss
        return path.roundTrip / 2 + (isLost ? max(0.2, path.roundTrip * 1.5) : 0)
    }

    private mutating func schedule(_ event: Event, after delay: Double, began: Double) {
        number += 1
        let scheduled = (time: now + delay, number: number, event: event, began: began)
        // Sorted in descending order, so the next event is the last.
        var (low, high) = (0, events.count)
        while low < high {
            let middle = (low + high) / 2
            if (events[middle].time, events[middle].number) > (scheduled.time, scheduled.number) { low = middle + 1 } else { high = middle }
        }
        events.insert(scheduled, at: low)
    }

    private mutating func takeNext() -> (time: Double, number: Int, event: Event, began: Double)? { events.popLast() }
}
