import TransferCore

/// A point in time, and the error to throw after it.
struct Deadline {
    let time: ContinuousClock.Instant
    let error: TransferError

    init(in duration: Duration, _ error: TransferError) {
        time = .now + duration
        self.error = error
    }

    /// The remaining time in milliseconds for poll(2), rounded up, at most one hour; 0 after the deadline.
    var milliseconds: Int32 { (time - .now).pollMilliseconds }
}

extension Duration {
    /// The duration in whole milliseconds for poll(2), rounded up, at most one hour.
    var pollMilliseconds: Int32 {
        Int32(max(0, min(3_600_000, (self / .milliseconds(1)).rounded(.up))))
    }
}
