import Foundation
import Locking
import TransferCore
import TransferKit

/// A simulation, in virtual time, of transports that use a pacer.
struct PacedTraffic {
    struct File {
        var session: SessionKey = 1
        var account: AccountKey = 1
        /// The number of bytes that the transport requests from the pacer at a time.
        var readSize = 65_536
        /// The rate of the network in bytes per second.
        var network = 4_294_967_296.0
        /// The maximum time between the end of the pacer's delay and the next request, in milliseconds.
        var lateness = 3.0
        /// The seconds from a refusal until the next request, regardless of the pacer's delay; nil to respect this delay.
        var impatience: Double?
    }

    /// A summary of the pacer's responses to the requests of one file.
    struct Responses: Equatable {
        var granted = 0
        var refused = 0
        var smallest = Int.max
        var longestWait = Duration.zero
    }

    /// The number of slots of ``ledger`` for each second.
    static let resolution = 100

    let pacer: Pacer
    private let clock = Locked(Duration.zero)
    private let files: [File]
    private var nextRequest: [Double]
    private(set) var now = 0.0
    private(set) var responses: [Responses]
    /// For each file, the number of bytes that the pacer granted in each hundredth of a second.
    private(set) var ledger: [[Int]]
    private var random = UInt64(1)

    init(_ files: [File]) {
        self.files = files
        let clock = clock
        pacer = Pacer(clock: EngineClock(now: { clock.withLock { $0 } }, date: { .distantPast }, sleep: { _ in }))
        nextRequest = files.indices.map { Double($0) * 1e-6 }
        responses = files.map { _ in Responses() }
        ledger = files.map { _ in [] }
    }

    /// Advances the time by a number of seconds in which no file requests bytes.
    mutating func idle(seconds: Double) {
        for file in files.indices { nextRequest[file] += seconds }
        run(until: now + seconds)
    }

    mutating func run(until end: Double) {
        while let file = files.indices.min(by: { nextRequest[$0] < nextRequest[$1] }), nextRequest[file] < end {
            move(to: nextRequest[file])
            requestBytes(file)
        }
        move(to: end)
    }

    private mutating func requestBytes(_ file: Int) {
        let settings = files[file]
        let allowance = pacer.allowance(upTo: settings.readSize, session: settings.session, account: settings.account)
        guard allowance.bytes > 0 else {
            responses[file].refused += 1
            responses[file].longestWait = max(responses[file].longestWait, allowance.retryAfter)
            if let impatience = settings.impatience { return nextRequest[file] = now + impatience }
            // Like libcurl, waits for whole milliseconds, and slightly longer.
            nextRequest[file] = now + ((allowance.retryAfter.inSeconds * 1_000).rounded(.up) + settings.lateness * fraction()) / 1_000
            return
        }
        responses[file].granted += 1
        responses[file].smallest = min(responses[file].smallest, allowance.bytes)
        let slot = Int(now * Double(Self.resolution))
        if ledger[file].count <= slot { ledger[file] += Array(repeating: 0, count: slot + 1 - ledger[file].count) }
        ledger[file][slot] += allowance.bytes
        nextRequest[file] = now + Double(allowance.bytes) / settings.network
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
    /// Returns the number of bytes that the pacer granted to the selected files between two times, in seconds.
    func bytes(of isSelected: (File) -> Bool = { _ in true }, from start: Double, to end: Double) -> Int {
        let slots = Int(start * Double(Self.resolution))..<Int(end * Double(Self.resolution))
        return files.indices.filter { isSelected(files[$0]) }.reduce(0) { sum, file in
            sum + ledger[file][min(slots.lowerBound, ledger[file].count)..<min(slots.upperBound, ledger[file].count)].reduce(0, +)
        }
    }

    /// Returns the smallest and the largest number of bytes that the pacer granted to the selected files in any period of ten seconds, as
    /// fractions of the number that the rate permits.
    func extremes(rate: Int64, from start: Double = 0, of isSelected: (File) -> Bool = { _ in true }) -> ClosedRange<Double> {
        let window = 10 * Self.resolution
        let first = Int(start * Double(Self.resolution))
        let last = Int(now * Double(Self.resolution))
        var sums = [0]
        for slot in first..<last {
            let moved = files.indices.reduce(0) {
                $0 + (isSelected(files[$1]) && slot < ledger[$1].count ? ledger[$1][slot] : 0)
            }
            sums.append(sums[sums.count - 1] + moved)
        }
        let windows = (window..<sums.count).map { Double(sums[$0] - sums[$0 - window]) / Double(rate * 10) }
        return (windows.min() ?? 0)...(windows.max() ?? .infinity)
    }
}
