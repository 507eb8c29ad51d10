import Foundation
import Locking
import TransferCore
import TransferKit

/// A clock that follows the machine's time, and that a test can advance to skip long sleeps of the queue.
final class FallbackClock: Sendable {
    private struct Sleeper {
        let deadline: Duration
        let continuation: CheckedContinuation<Void, any Error>
        /// Wakes the sleeper after the real duration, if the test does not advance the clock.
        let alarm: Task<Void, any Error>
    }

    private struct State {
        var skipped = Duration.zero
        var nextID = 0
        var sleepers: [Int: Sleeper] = [:]
        var watchers: [AsyncStream<Duration>.Continuation] = []
    }

    private let state = Locked(State())
    /// Date and uptime advance together, even if the machine's date changes.
    private let beginning = (date: EngineClock.system.date(), uptime: EngineClock.system.now())

    var engineClock: EngineClock {
        EngineClock(now: { self.now }, date: { self.date }, sleep: { try await self.sleep($0) })
    }

    var now: Duration { EngineClock.system.now() + state.withLock { $0.skipped } }
    var date: Date { beginning.date.addingTimeInterval((now - beginning.uptime).inSeconds) }

    /// Advances the time, and wakes the sleepers that are due.
    func jump(by duration: Duration) {
        guard duration > .zero else { return }
        let due = state.withLock { state in
            state.skipped += duration
            let now = EngineClock.system.now() + state.skipped
            let due = state.sleepers.filter { $0.value.deadline <= now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.sorted { $0.deadline < $1.deadline }
        }
        for sleeper in due { wake(sleeper) }
    }

    /// Advances the time by `duration` in steps of one second, and waits for a sample of the stall watch after each step. A single large
    /// step would not trigger a stall: the stall watch takes a gap of five seconds between two samples for a suspension of the machine.
    func pass(_ duration: Duration) async {
        let end = now + duration
        while now < end && !Task.isCancelled {
            jump(by: .seconds(1))
            await waits(for: .milliseconds(100), times: 1)
        }
    }

    func jump(to date: Date) {
        jump(by: .seconds(date.timeIntervalSince(self.date)))
    }

    /// The durations of all sleeps that begin after this call.
    var waits: AsyncStream<Duration> {
        let (waits, watcher) = AsyncStream.makeStream(of: Duration.self)
        state.withLock { $0.watchers.append(watcher) }
        return waits
    }

    /// Returns after `times` sleeps of the given duration have begun.
    func waits(for duration: Duration, times: Int) async {
        var left = times
        for await wait in waits where wait == duration {
            left -= 1
            if left == 0 { return }
        }
    }

    private func wake(_ sleeper: Sleeper?, throwing error: CancellationError? = nil) {
        sleeper?.alarm.cancel()
        if let error { sleeper?.continuation.resume(throwing: error) } else { sleeper?.continuation.resume() }
    }

    private func removeSleeper(_ id: Int) -> Sleeper? {
        state.withLock { $0.sleepers.removeValue(forKey: id) }
    }

    private func sleep(_ duration: Duration) async throws {
        guard duration > .zero else { return }
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let watchers = state.withLock { state -> [AsyncStream<Duration>.Continuation]? in
                    // The cancellation handler below may already have run and found no sleeper.
                    guard !Task.isCancelled else { return nil }
                    let alarm = Task {
                        try await Task.sleep(for: duration, clock: .continuous)
                        self.wake(self.removeSleeper(id))
                    }
                    let deadline = EngineClock.system.now() + state.skipped + duration
                    state.sleepers[id] = Sleeper(deadline: deadline, continuation: continuation, alarm: alarm)
                    return state.watchers
                }
                guard let watchers else { return continuation.resume(throwing: CancellationError()) }
                for watcher in watchers { watcher.yield(duration) }
            }
        } onCancel: {
            wake(removeSleeper(id), throwing: CancellationError())
        }
    }
}
