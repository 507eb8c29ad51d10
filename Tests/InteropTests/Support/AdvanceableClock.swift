import Foundation
import Locking
import TransferCore
import TransferKit

/// A clock that follows the machine's time, and that a test can advance to skip long sleeps of the queue.
final class AdvanceableClock: Sendable {
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

    func advance(by duration: Duration) {
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

    /// Advances the time by `duration` in steps of one second. After each step, waits until the queue has checked for stalled attempts. The
    /// queue ignores a single large step: if two checks are more than five seconds apart, it assumes that the machine was suspended.
    func advanceInSteps(by duration: Duration) async {
        let end = now + duration
        while now < end && !Task.isCancelled {
            advance(by: .seconds(1))
            await awaitSleeps(of: .milliseconds(100), times: 1)
        }
    }

    func advance(to date: Date) {
        advance(by: .seconds(date.timeIntervalSince(self.date)))
    }

    /// The durations of all sleeps that begin after this call.
    var sleeps: AsyncStream<Duration> {
        let (sleeps, watcher) = AsyncStream.makeStream(of: Duration.self)
        state.withLock { $0.watchers.append(watcher) }
        return sleeps
    }

    /// Returns after `times` sleeps of the given duration have begun.
    func awaitSleeps(of duration: Duration, times: Int) async {
        var left = times
        for await sleep in sleeps where sleep == duration {
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
