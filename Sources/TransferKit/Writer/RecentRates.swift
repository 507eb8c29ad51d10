/// The average rate of an account's recent runs, for each account that has moved bytes since the queue was opened.
struct RecentRates: Sendable {
    /// The weight of a run in the average, relative to the next run.
    private static let weight = 0.8

    private struct Sum: Sendable {
        var bytes: Double
        var seconds: Double
    }

    private var sums: [AccountKey: Sum] = [:]

    /// Returns the rate of an account in bytes per second. If the account has moved no bytes yet, returns the average rate of all accounts, or
    /// nil if no account has moved bytes.
    func rate(of account: AccountKey) -> Double? {
        if let sum = sums[account] { return sum.bytes / sum.seconds }
        let seconds = sums.values.reduce(0) { $0 + $1.seconds }
        return seconds > 0 ? sums.values.reduce(0) { $0 + $1.bytes } / seconds : nil
    }

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
