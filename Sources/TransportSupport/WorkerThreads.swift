import Dispatch
import Locking
import SystemPackage
package import TransferCore

/// A limited number of threads for blocking calls, such as reading a file on a slow disk.
///
/// Blocking calls must not run on the cooperative thread pool, which has one thread per core. A call that finds no idle thread creates a
/// thread, up to the limit. The threads end when the last reference to this object is released.
public final class WorkerThreads: Sendable {
    private let queue: JobQueue

    /// Creates an object without threads.
    ///
    /// - Parameter limit: The maximum number of threads, at least 1. Calls wait while all threads are busy.
    public init(limit: Int) {
        queue = JobQueue(limit: max(1, limit))
    }

    deinit {
        queue.close()
    }

    /// Runs a function on one of the threads, and returns without waiting for the function to end. Call this method on any thread.
    ///
    /// This object stays alive until the function returns. A function that hangs therefore still counts towards the limit.
    ///
    /// - Throws: A ``/TransferCore/TransferError`` of the class ``/TransferCore/FailureClass/noSpace`` if there are no threads yet and no
    ///   thread can be created.
    package func submit(_ job: @escaping @Sendable () -> Void) throws(TransferError) {
        try queue.add { [self] in withExtendedLifetime(self, job) }
    }

    /// Runs a function on one of the threads, and returns its result.
    ///
    /// - Throws: The error of the function; a ``/TransferCore/TransferError`` of the class ``/TransferCore/FailureClass/noSpace`` if there are no
    ///   threads yet and no thread can be created.
    public func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try queue.add { continuation.resume(with: Swift.Result(catching: body)) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    /// Like ``run(_:)``, but if the calling task is cancelled, throws `CancellationError` immediately. The function may still run to its
    /// end, so use this method only for functions without side effects.
    package func runUnlessCancelled<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        let outcome = SingleResult<Result>()
        try submit { outcome.resume(Swift.Result(catching: body)) }
        return try await outcome.valueUnlessCancelled()
    }
}

/// The shared state of the threads. The threads retain only this object, so ``WorkerThreads`` can be deallocated while they wait. Its deinitializer
/// then ends the threads.
private final class JobQueue: Sendable {
    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var threads = 0
        var idleThreads = 0
    }

    private let limit: Int
    private let state = Locked(State())
    /// Signalled once for each added function, and once for each thread when the threads must end.
    private let wakeUps = DispatchSemaphore(value: 0)

    init(limit: Int) {
        self.limit = limit
    }

    func add(_ job: @escaping @Sendable () -> Void) throws(TransferError) {
        try state.withLock { state throws(TransferError) in
            if state.idleThreads <= state.jobs.count, state.threads < limit {
                // The lock is held until the thread exists, so no other caller relies on a thread that can't be created.
                do throws(Errno) {
                    try startThread { self.work() }
                    state.threads += 1
                    state.idleThreads += 1
                } catch {
                    // If there are other threads, one of them runs the function.
                    if state.threads == 0 {
                        throw TransferError(
                            .noSpace, .internalFailure,
                            "Cannot create a thread for file access. Raise the limit of processes (ulimit -u).", cause: "\(error)")
                    }
                }
            }
            state.jobs.append(job)
        }
        wakeUps.signal()
    }

    func close() {
        let threads = state.withLock { $0.threads }
        for _ in 0..<threads { wakeUps.signal() }
    }

    private func work() {
        while true {
            wakeUps.wait()
            let job = state.withLock { state -> (@Sendable () -> Void)? in
                guard !state.jobs.isEmpty else { return nil }
                state.idleThreads -= 1
                return state.jobs.removeFirst()
            }
            guard let job else { return }
            job()
            state.withLock { $0.idleThreads += 1 }
        }
    }
}
