import Dispatch
import Locking
import SystemPackage
public import TransferCore

/// A few threads for calls that block, such as reading a file on a slow disk.
///
/// Blocking calls must not run on the cooperative thread pool, which has one thread a core. The threads are made when work finds none idle,
/// and end when the last reference to this object goes.
public final class WorkerThreads: Sendable {
    private let queue: JobQueue

    /// Makes an object without threads yet.
    ///
    /// - Parameter limit: How many threads there may be, at least 1. Work beyond that waits its turn.
    public init(limit: Int) {
        queue = JobQueue(limit: max(1, limit))
    }

    deinit {
        queue.close()
    }

    /// Runs a function on one of the threads, some time after this call returns. May be called from any thread. The threads stay until then, so that
    /// who comes while the function hangs has no more of them than there may be.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/noSpace`` if there is no thread and none can be made.
    public func submit(_ job: @escaping @Sendable () -> Void) throws(TransferError) {
        try queue.add { [self] in withExtendedLifetime(self, job) }
    }

    /// Runs a function on one of the threads and hands back what it returns or throws.
    public func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try queue.add { continuation.resume(with: Swift.Result(catching: body)) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    /// As ``run(_:)``, but for functions that change nothing: a caller that is cancelled does not wait for one that hangs.
    package func runUnlessCancelled<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        let outcome = Once<Result>()
        try submit { outcome.resume(Swift.Result(catching: body)) }
        return try await outcome.valueUnlessCancelled()
    }
}

/// What the threads share. They hold this and not the ``WorkerThreads``, whose end is what ends them.
private final class JobQueue: Sendable {
    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var threads = 0
        var idleThreads = 0
    }

    private let limit: Int
    private let state = Locked(State())
    private let doorbell = DispatchSemaphore(value: 0)

    init(limit: Int) {
        self.limit = limit
    }

    func add(_ job: @escaping @Sendable () -> Void) throws(TransferError) {
        try state.withLock { state throws(TransferError) in
            if state.idleThreads <= state.jobs.count, state.threads < limit {
                // Under the lock, so that nobody else counts on a thread that then can't be made.
                do throws(Errno) {
                    try startThread { self.work() }
                    state.threads += 1
                    state.idleThreads += 1
                } catch {
                    // If there are other threads, one of them does it.
                    if state.threads == 0 {
                        throw TransferError(.noSpace, .internalFailure, "No thread can be made to read files with.", cause: "\(error)")
                    }
                }
            }
            state.jobs.append(job)
        }
        doorbell.signal()
    }

    func close() {
        let threads = state.withLock { $0.threads }
        for _ in 0..<threads { doorbell.signal() }
    }

    private func work() {
        while true {
            doorbell.wait()
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
