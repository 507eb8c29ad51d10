import Foundation
import Locking
import TransferCore
import TransferKit

/// A clock that stands still until the test advances it.
final class TestClock: Sendable {
    private struct Sleeper {
        let deadline: Duration
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Duration.zero
        /// The number of seconds by which tests have changed the date.
        var dateOffset = 0.0
        var nextID = 0
        var sleepers: [Int: Sleeper] = [:]
        var watchers: [(deadline: Duration, count: Int, continuation: CheckedContinuation<Void, Never>)] = []

        func count(until deadline: Duration) -> Int { sleepers.values.count { $0.deadline == deadline } }
    }

    private let state = Locked(State())

    var engineClock: EngineClock {
        EngineClock(
            now: { self.state.withLock { $0.now } },
            date: { self.state.withLock { Date(timeIntervalSince1970: 1_000_000 + $0.dateOffset + $0.now.inSeconds) } },
            sleep: { try await self.sleep($0) })
    }

    /// Advances the time, and resumes all due sleepers.
    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now += duration
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.sorted { $0.deadline < $1.deadline }
        }
        for sleeper in due { sleeper.continuation.resume() }
    }

    /// Sets the date forward or back without changing the uptime.
    func setDate(by seconds: Double) {
        state.withLock { $0.dateOffset += seconds }
    }

    /// Returns when at least `count` tasks are sleeping until exactly `duration` from now.
    func waitForSleep(of duration: Duration, count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isSatisfied = state.withLock { state in
                let deadline = state.now + duration
                if state.count(until: deadline) >= count { return true }
                state.watchers.append((deadline, count, continuation))
                return false
            }
            if isSatisfied { continuation.resume() }
        }
    }

    private func sleep(_ duration: Duration) async throws {
        guard duration > .zero else { return }
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let satisfied: [CheckedContinuation<Void, Never>]? = state.withLock { state in
                    guard !Task.isCancelled else { return nil }
                    let deadline = state.now + duration
                    state.sleepers[id] = Sleeper(deadline: deadline, continuation: continuation)
                    let count = state.count(until: deadline)
                    let isSatisfied = { (watcher: (deadline: Duration, count: Int, _: CheckedContinuation<Void, Never>)) in
                        watcher.deadline == deadline && watcher.count <= count
                    }
                    defer { state.watchers.removeAll(where: isSatisfied) }
                    return state.watchers.filter(isSatisfied).map(\.continuation)
                }
                guard let satisfied else { return continuation.resume(throwing: CancellationError()) }
                for watcher in satisfied { watcher.resume() }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume(throwing: CancellationError())
        }
    }
}
