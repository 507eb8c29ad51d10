import Foundation

/// The recent rate of a transfer: in its first three seconds, the average since the start; then an exponentially weighted moving average
/// over about the last three seconds. Without the average at the start, the first burst of a limited transfer would distort the rate for
/// several seconds.
package struct RateMeter: Sendable {
    package init() {}

    private static let timeConstant = 3.0
    private var first: (bytes: Int64, uptime: Duration)?
    private var last: (bytes: Int64, uptime: Duration)?
    private var smoothed: Double?

    /// Bytes per second; nil before the second sample.
    package var rate: Double? { smoothed }

    /// Whether the samples cover half a second. Before that, the first burst distorts the rate, so an estimate of the remaining time would
    /// jump.
    package var isReliable: Bool {
        guard let first, let last else { return false }
        return last.uptime - first.uptime >= .milliseconds(500)
    }

    package mutating func sample(bytes: Int64, at uptime: Duration) {
        guard let previous = last else {
            (first, last) = ((bytes, uptime), (bytes, uptime))
            return
        }
        let seconds = (uptime - previous.uptime).inSeconds
        guard seconds > 0 else { return }
        last = (bytes, uptime)
        if let first, (uptime - first.uptime).inSeconds <= Self.timeConstant {
            smoothed = Double(max(0, bytes - first.bytes)) / (uptime - first.uptime).inSeconds
            return
        }
        let current = Double(max(0, bytes - previous.bytes)) / seconds
        guard let before = smoothed else {
            smoothed = current
            return
        }
        let weight = 1 - exp(-seconds / Self.timeConstant)
        smoothed = before + weight * (current - before)
    }
}
