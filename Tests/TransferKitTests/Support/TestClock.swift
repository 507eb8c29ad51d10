import Foundation
import Locking
import TransferCore
import TransferKit

/// A clock that stands still until the test moves it.
final class TestClock: Sendable {
    private struct Sleeper {
        let deadline: Duration
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Duration.zero
        /// By how much somebody set the date.
        var dateOffset = 0.0
        var nextID = 0
        var sleepers: [Int: Sleeper] = [:]
        var watchers: [(needed: Duration, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Locked(State())

    var engineClock: EngineClock {
        EngineClock(
            now: { self.state.withLock { $0.now } },
            date: { self.state.withLock { Date(timeIntervalSince1970: 1_000_000 + $0.dateOffset + $0.now.inSeconds) } },
            sleep: { try await self.sleep($0) })
    }

    /// Moves time on, and wakes whoever is due.
    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now += duration
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.sorted { $0.deadline < $1.deadline }
        }
        for sleeper in due { sleeper.continuation.resume() }
    }

    /// Sets the date on or back, while the uptime stays.
    func setDate(by seconds: Double) {
        state.withLock { $0.dateOffset += seconds }
    }

    /// Returns once somebody sleeps for exactly this long from now.
    func sleeps(for duration: Duration) async {
        await withCheckedContinuation { continuation in
            let isTrue = state.withLock { state in
                let needed = state.now + duration
                if state.sleepers.values.contains(where: { $0.deadline == needed }) { return true }
                state.watchers.append((needed, continuation))
                return false
            }
            if isTrue { continuation.resume() }
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
                    let satisfied = state.watchers.filter { $0.needed == deadline }
                    state.watchers.removeAll { $0.needed == deadline }
                    return satisfied.map(\.continuation)
                }
                guard let satisfied else { return continuation.resume(throwing: CancellationError()) }
                for watcher in satisfied { watcher.resume() }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume(throwing: CancellationError())
        }
    }
}
