import TransferCore

/// Until when something may take, and what to say if it takes longer.
struct Deadline {
    let time: ContinuousClock.Instant
    let error: TransferError

    init(in duration: Duration, _ error: TransferError) {
        time = .now + duration
        self.error = error
    }

    /// In milliseconds for poll(2), rounded up; 0 if it is over.
    var milliseconds: Int32 { (time - .now).pollMilliseconds }
}

extension Duration {
    /// As poll(2) takes it: whole milliseconds, rounded up so that a wait never ends before its time.
    var pollMilliseconds: Int32 {
        Int32(max(0, min(3_600_000, (self / .milliseconds(1)).rounded(.up))))
    }
}
