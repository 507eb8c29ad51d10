package import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The only source of time of the queue and of its runs. Tests can replace it.
package struct EngineClock: Sendable {
    /// Returns the time since an arbitrary point in the past. Never jumps.
    package var now: @Sendable () -> Duration
    /// Returns the wall-clock time.
    package var date: @Sendable () -> Date
    /// Returns after a duration; throws `CancellationError` when the task is cancelled.
    package var sleep: @Sendable (Duration) async throws -> Void
    /// Returns the seconds by which the local time is ahead of UTC at a date.
    package var utcOffset: @Sendable (Date) -> Int

    package init(
        now: @escaping @Sendable () -> Duration, date: @escaping @Sendable () -> Date,
        sleep: @escaping @Sendable (Duration) async throws -> Void, utcOffset: @escaping @Sendable (Date) -> Int = Self.systemOffset
    ) {
        self.now = now
        self.date = date
        self.sleep = sleep
        self.utcOffset = utcOffset
    }

    /// Returns the seconds by which the local time of this machine is ahead of UTC at a date. Follows changes of the time zone (tzset(3)).
    @Sendable package static func systemOffset(at date: Date) -> Int {
        // A damaged clock must not cause an overflow.
        var time = time_t(min(max(date.timeIntervalSince1970, -1e12), 1e12))
        var local = unsafe tm()
        tzset()
        guard unsafe localtime_r(&time, &local) != nil else { return 0 }
        return unsafe local.tm_gmtoff
    }

    /// The machine's clocks.
    package static let system: EngineClock = {
        let start = ContinuousClock.now
        return EngineClock(
            now: { start.duration(to: .now) }, date: { Date() }, sleep: { try await Task.sleep(for: $0, clock: .continuous) })
    }()

    /// The rate limit that applies now, in bytes per second; nil for no limit.
    ///
    /// - Parameter stored: The limit at times without a rule of the timetable.
    func currentLimit(_ stored: Int64?, _ timetable: BandwidthTimetable?) -> Int64? {
        guard let timetable else { return stored }
        let date = date()
        return timetable.limit(at: date, utcOffset: utcOffset(date), otherwise: stored)
    }

    var moment: DualInstant { DualInstant(uptime: now(), date: date()) }
}

/// A point in time, as an uptime and as a date of an ``EngineClock``.
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
