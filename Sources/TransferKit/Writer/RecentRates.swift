/// The recent rate of one session of each account, as far as it is known.
struct RecentRates: Sendable {
    /// The weight of an earlier run relative to a later one.
    private static let weight = 0.8

    private struct Sum: Sendable {
        var bytes: Double
        var seconds: Double
    }

    private var sums: [AccountKey: Sum] = [:]

    /// Bytes per second; the rate of all accounts together if there is none for this account, nil if there is none at all.
    func rate(of account: AccountKey) -> Double? {
        if let sum = sums[account] { return sum.bytes / sum.seconds }
        let seconds = sums.values.reduce(0) { $0 + $1.seconds }
        return seconds > 0 ? sums.values.reduce(0) { $0 + $1.bytes } / seconds : nil
    }

    /// Records a run that is over.
    mutating func add(bytes: Int64, in duration: Duration, account: AccountKey) {
        guard bytes > 0, duration > .zero else { return }
        let before = sums[account] ?? Sum(bytes: 0, seconds: 0)
        sums[account] = Sum(
            bytes: before.bytes * Self.weight + Double(bytes), seconds: before.seconds * Self.weight + duration.inSeconds)
    }

    mutating func set(_ rate: Double, account: AccountKey) {
        sums[account] = Sum(bytes: rate, seconds: 1)
    }
}
