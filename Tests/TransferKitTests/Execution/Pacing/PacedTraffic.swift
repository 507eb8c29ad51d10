import Foundation
import Locking
import TransferCore
import TransferKit

/// Transports that ask a pacer, simulated in virtual time.
struct PacedTraffic {
    /// One file in flight.
    struct File {
        var session: SessionKey = 1
        var account: AccountKey = 1
        /// How many bytes the transport asks for at once.
        var read = 65_536
        /// What its network takes, in bytes per second.
        var network = 4_294_967_296.0
        /// By how many milliseconds at most it is too late when it was told to come back.
        var lateness = 3.0
        /// Set for a transport that asks again after this many seconds, whatever it was told.
        var impatience: Double?
    }

    struct Answers: Equatable {
        var granted = 0
        var refused = 0
        var smallest = Int.max
        var longestWait = Duration.zero
    }

    /// Ledger entries are this many to a second.
    static let resolution = 100

    let pacer: Pacer
    private let clock = Locked(Duration.zero)
    private let files: [File]
    private var nextAsk: [Double]
    private(set) var now = 0.0
    private(set) var answers: [Answers]
    /// The bytes of each file, by hundredths of a second.
    private(set) var ledger: [[Int]]
    private var random = UInt64(1)

    init(_ files: [File]) {
        self.files = files
        let clock = clock
        pacer = Pacer(clock: EngineClock(now: { clock.withLock { $0 } }, date: { .distantPast }, sleep: { _ in }))
        nextAsk = files.indices.map { Double($0) * 1e-6 }
        answers = files.map { _ in Answers() }
        ledger = files.map { _ in [] }
    }

    /// No file asks for bytes for some seconds.
    mutating func idle(seconds: Double) {
        for file in files.indices { nextAsk[file] += seconds }
        run(until: now + seconds)
    }

    mutating func run(until end: Double) {
        while let file = files.indices.min(by: { nextAsk[$0] < nextAsk[$1] }), nextAsk[file] < end {
            move(to: nextAsk[file])
            ask(file)
        }
        move(to: end)
    }

    private mutating func ask(_ file: Int) {
        let settings = files[file]
        let allowance = pacer.allowance(upTo: settings.read, session: settings.session, account: settings.account)
        guard allowance.bytes > 0 else {
            answers[file].refused += 1
            answers[file].longestWait = max(answers[file].longestWait, allowance.retryAfter)
            if let impatience = settings.impatience { return nextAsk[file] = now + impatience }
            // As libcurl does it: whole milliseconds, and some more.
            nextAsk[file] = now + ((allowance.retryAfter.inSeconds * 1_000).rounded(.up) + settings.lateness * fraction()) / 1_000
            return
        }
        answers[file].granted += 1
        answers[file].smallest = min(answers[file].smallest, allowance.bytes)
        let slot = Int(now * Double(Self.resolution))
        if ledger[file].count <= slot { ledger[file] += Array(repeating: 0, count: slot + 1 - ledger[file].count) }
        ledger[file][slot] += allowance.bytes
        nextAsk[file] = now + Double(allowance.bytes) / settings.network
    }

    private mutating func move(to time: Double) {
        now = max(now, time)
        clock.withLock { $0 = .seconds(now) }
    }

    private mutating func fraction() -> Double {
        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Double(random >> 40) / Double(1 << 24)
    }
}

extension PacedTraffic {
    /// The bytes that files moved in a span of time.
    func bytes(of isCounted: (File) -> Bool = { _ in true }, from start: Double, to end: Double) -> Int {
        let slots = Int(start * Double(Self.resolution))..<Int(end * Double(Self.resolution))
        return files.indices.filter { isCounted(files[$0]) }.reduce(0) { sum, file in
            sum + ledger[file][min(slots.lowerBound, ledger[file].count)..<min(slots.upperBound, ledger[file].count)].reduce(0, +)
        }
    }

    /// The least and the most that was moved in any ten seconds, as a part of what the rate allows.
    func extremes(rate: Int64, from start: Double = 0, of isCounted: (File) -> Bool = { _ in true }) -> ClosedRange<Double> {
        let window = 10 * Self.resolution
        let first = Int(start * Double(Self.resolution))
        let last = Int(now * Double(Self.resolution))
        var sums = [0]
        for slot in first..<last {
            let moved = files.indices.reduce(0) {
                $0 + (isCounted(files[$1]) && slot < ledger[$1].count ? ledger[$1][slot] : 0)
            }
            sums.append(sums[sums.count - 1] + moved)
        }
        let windows = (window..<sums.count).map { Double(sums[$0] - sums[$0 - window]) / Double(rate * 10) }
        return (windows.min() ?? 0)...(windows.max() ?? .infinity)
    }
}
