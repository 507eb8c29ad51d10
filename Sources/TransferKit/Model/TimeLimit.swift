import Locking
import TransferCore

/// A time limit for work that may never end.
package enum TimeLimit {
    /// How long a cancelled call waits for its body to end.
    private static let grace = Duration.seconds(5)

    /// Runs a body with a time limit. Does not wait for a body that ignores its cancellation.
    ///
    /// - Throws: The error of the body; ``TransferError`` with the code `timedOut` and the given message after the time limit;
    ///   `CancellationError` if the body does not end within 5 s after the task was cancelled.
    package static func run(
        for duration: Duration, _ clock: EngineClock, _ message: String, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        let outcome = FirstOutcome()
        let attempt = Task {
            do {
                try await body()
                outcome.resolve(.success(()))
            } catch {
                outcome.resolve(.failure(error))
            }
        }
        let timer = Task {
            guard (try? await clock.sleep(duration)) != nil else { return }
            outcome.resolve(.failure(TransferError(.transient, .timedOut, message)))
        }
        defer {
            timer.cancel()
            attempt.cancel()
        }
        try await withTaskCancellationHandler {
            try await outcome.value()
        } onCancel: {
            attempt.cancel()
            Task {
                try? await clock.sleep(grace)
                outcome.resolve(.failure(CancellationError()))
            }
        }
    }
}

private final class FirstOutcome: Sendable {
    private enum State: Sendable {
        case open(CheckedContinuation<Void, any Error>?)
        case resolved(Result<Void, any Error>)
    }

    private let state = Locked(State.open(nil))

    func resolve(_ result: Result<Void, any Error>) {
        let waiter: CheckedContinuation<Void, any Error>? = state.withLock { state in
            guard case .open(let waiter) = state else { return nil }
            state = .resolved(result)
            return waiter
        }
        waiter?.resume(with: result)
    }

    /// Waits for the outcome. Supports one caller.
    func value() async throws {
        try await withCheckedThrowingContinuation { continuation in
            let result: Result<Void, any Error>? = state.withLock { state in
                if case .resolved(let result) = state { return result }
                state = .open(continuation)
                return nil
            }
            if let result { continuation.resume(with: result) }
        }
    }
}
