package import Foundation

/// The engine's only source of time, which tests can replace.
package struct EngineClock: Sendable {
    /// Returns the time since an arbitrary point in the past. Never jumps.
    package var now: @Sendable () -> Duration
    /// Returns the wall-clock time.
    package var date: @Sendable () -> Date
    /// Returns after a duration; throws `CancellationError` when the task is cancelled.
    package var sleep: @Sendable (Duration) async throws -> Void

    package init(
        now: @escaping @Sendable () -> Duration, date: @escaping @Sendable () -> Date,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.now = now
        self.date = date
        self.sleep = sleep
    }

    /// The machine's clocks.
    package static let system: EngineClock = {
        let start = ContinuousClock.now
        return EngineClock(
            now: { start.duration(to: .now) }, date: { Date() }, sleep: { try await Task.sleep(for: $0, clock: .continuous) })
    }()

    /// The current time on both clocks.
    var moment: DualInstant { DualInstant(uptime: now(), date: date()) }
}

/// A point in time, on both clocks of an ``EngineClock``.
package struct DualInstant: Sendable, Hashable, Codable {
    /// The time since an arbitrary point in the past. Never jumps.
    package var uptime: Duration
    /// The wall-clock time.
    package var date: Date

    package init(uptime: Duration, date: Date) {
        self.uptime = uptime
        self.date = date
    }

    package static func + (moment: DualInstant, duration: Duration) -> DualInstant {
        DualInstant(uptime: moment.uptime + duration, date: moment.date + duration)
    }
}

extension Date {
    static func + (date: Date, duration: Duration) -> Date {
        date.addingTimeInterval(duration.inSeconds)
    }
}

extension Duration {
    /// The duration in seconds, with fractions.
    package var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) * 1e-18
    }
}
