import Foundation
import TransferKit
import TransferOutput

/// The rates of the last ten minutes, in total and by account.
actor RateHistory {
    /// The rates at one time, in bytes per second.
    struct Sample: Sendable {
        let time: Date
        let accounts: [String: Double]

        var total: Double { accounts.values.reduce(0, +) }
    }

    /// The maximum number of samples, and the interval between two samples.
    static let (count, interval) = (300, Duration.seconds(2))

    private var samples: [Sample] = []
    /// The number of the last sample. The first sample has the number 1.
    private var last: Int64 = 0

    func append(_ sample: Sample) {
        samples.append(sample)
        last += 1
        if samples.count > Self.count { samples.removeFirst(samples.count - Self.count) }
    }

    static func rates(of sessions: [SessionStatus]) -> [String: Double] {
        sessions.reduce(into: [:]) { $0[$1.account, default: 0] += $1.statistics.rate ?? 0 }
    }

    /// Returns the samples that a client does not have yet.
    ///
    /// - Parameter number: The number of the last sample that the client has; 0 for all samples. A number greater than ``last`` is from before a
    ///   restart of the server, and also selects all samples.
    func json(after number: Int64) -> JSONValue {
        let count = number > last ? samples.count : Int(clamping: last - number)
        return [
            "seconds": .number(Self.interval / .seconds(1)), "last": .integer(last),
            "samples": .array(
                samples.suffix(count).map { sample in
                    [
                        "time": JSONValue(sample.time), "rate": .number(sample.total),
                        "accounts": .object(sample.accounts.sorted { $0.key < $1.key }.map { (name: $0.key, value: .number($0.value)) }),
                    ]
                }),
        ]
    }
}
