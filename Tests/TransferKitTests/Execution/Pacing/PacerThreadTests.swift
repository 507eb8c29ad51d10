import Foundation
import Locking
import Testing
import TransferCore
import TransferKit

@Suite struct PacerThreadTests {
    /// Runs a job on `count` concurrent threads, and returns when all threads have ended.
    private func onThreads(_ count: Int, _ job: @escaping @Sendable (Int) -> Void) async {
        let running = Locked(count)
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            for index in 0..<count {
                Thread.detachNewThread {
                    job(index)
                    let isLast = running.withLock { running in
                        running -= 1
                        return running == 0
                    }
                    if isLast { continuation.resume() }
                }
            }
        }
    }

    @Test func manyThreadsStayWithinLimits() async {
        let time = Locked((now: Duration.zero, refused: Set<Int>()))
        let pacer = Pacer(clock: EngineClock(now: { time.withLock { $0.now } }, date: { .distantPast }, sleep: { _ in }))
        let moved = Locked([0, 0, 0])
        pacer.setQueueRate(3_000_000)
        pacer.setRate(1_000_000, account: 1)
        pacer.setRate(500_000, session: 1)
        // The time advances only after the pacer has refused a request of each thread. Otherwise, a thread that waits for a processor could
        // miss its share.
        let threads = 8
        await onThreads(threads) { thread in
            let session = SessionKey(1 + thread % 4)
            let account = AccountKey(1 + thread % 2)
            while time.withLock({ $0.now }) < .seconds(10) {
                let bytes = pacer.allowance(upTo: 16_384 << (thread % 3), session: session, account: account).bytes
                guard bytes > 0 else {
                    time.withLock { time in
                        time.refused.insert(thread)
                        guard time.refused.count == threads else { return }
                        time = (time.now + .milliseconds(20), [])
                    }
                    Thread.sleep(forTimeInterval: 0)
                    continue
                }
                moved.withLock { moved in
                    moved[0] += bytes
                    if account == 1 { moved[1] += bytes }
                    if session == 1 { moved[2] += bytes }
                }
            }
        }
        let rates = [3_000_000, 1_000_000, 500_000]
        for (moved, rate) in zip(moved.withLock(\.self), rates) {
            let fraction = Double(moved) / Double(rate * 10)
            #expect(fraction <= 1.05 && fraction >= 0.95, "\(rate): \(fraction)")
        }
    }

    @Test func queueLimitHoldsWhileSessionLimitsChange() async {
        let time = Locked(Duration.zero)
        let pacer = Pacer(clock: EngineClock(now: { time.withLock { $0 } }, date: { .distantPast }, sleep: { _ in }))
        let moved = Locked(0)
        pacer.setQueueRate(1_000_000)
        await onThreads(6) { thread in
            for turn in 0..<3_000 {
                let session = SessionKey(thread)
                if turn % 7 == 0 { pacer.setRate(turn % 2 == 0 ? Int64(turn + 1) * 100 : nil, session: session) }
                if turn % 100 == 0 { pacer.forget(session: session) }
                let bytes = pacer.allowance(upTo: 16_384, session: session, account: 1).bytes
                moved.withLock { $0 += bytes }
                time.withLock { $0 += .microseconds(200) }
            }
        }
        // The time advances by 6 × 3,000 × 200 µs = 3.6 s. The limit's token bucket permits up to 205,000 bytes more after idle time.
        #expect(moved.withLock(\.self) <= 1_000_000 * 36 / 10 + 205_000)
    }
}
