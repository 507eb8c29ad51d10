import Dispatch
import Locking

/// Runs calls that may wait for a disk, or for a network behind one, away from the cooperative thread pool, whose threads must never block.
///
/// Not on a concurrent queue: Dispatch runs that on the threads that the cooperative pool has as well, which are as many as the machine has
/// cores, and makes up for blocked ones only after a second. Each serial queue gets a thread of its own at once.
package enum DiskThread {
    /// Calls that share threads. A lane whose calls hang takes no threads from the others.
    package enum Lane: CaseIterable {
        /// Local files of sessions, which may be on a network share that does not answer.
        case files
        /// Part files that are removed, on the same shares.
        case parts
        /// Files and pipes that hold credentials.
        case credentials
        /// The storage folder.
        case storage

        /// The most calls of the lane that run at once.
        package var limit: Int {
            switch self {
            case .files: 64
            case .parts, .credentials: 16
            case .storage: 8
            }
        }
    }

    private static let files = BlockingQueues("transferkit.files", limit: Lane.files.limit)
    private static let parts = BlockingQueues("transferkit.parts", limit: Lane.parts.limit)
    private static let credentials = BlockingQueues("transferkit.credentials", limit: Lane.credentials.limit)
    private static let storage = BlockingQueues("transferkit.storage", limit: Lane.storage.limit)

    /// Runs a body on a thread that may be blocked. It waits for a thread while all of the lane are in use.
    package static func run<Value: Sendable, Failure: Error>(
        _ lane: Lane = .files, _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let queues =
            switch lane {
            case .files: files
            case .parts: parts
            case .credentials: credentials
            case .storage: storage
            }
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            queues.run { continuation.resume(returning: Result(catching: body)) }
        }
        return try result.get()
    }
}

/// Serial queues of Dispatch, each with at most one body at a time.
private final class BlockingQueues: Sendable {
    private struct State: Sendable {
        var idle: [DispatchQueue] = []
        var count = 0
        var waiting: [@Sendable () -> Void] = []
    }

    private let label: String
    private let limit: Int
    private let state = Locked(State())

    init(_ label: String, limit: Int) {
        self.label = label
        self.limit = limit
    }

    func run(_ body: @escaping @Sendable () -> Void) {
        let queue: DispatchQueue? = state.withLock { state in
            if let queue = state.idle.popLast() { return queue }
            guard state.count < limit else {
                state.waiting.append(body)
                return nil
            }
            state.count += 1
            return DispatchQueue(label: label)
        }
        queue?.async { self.work(on: queue, body) }
    }

    /// Runs a body, and all that waits for a thread then.
    private func work(on queue: DispatchQueue?, _ first: @Sendable () -> Void) {
        first()
        while let next = next(on: queue) { next() }
    }

    private func next(on queue: DispatchQueue?) -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            if let queue { state.idle.append(queue) }
            return nil
        }
    }
}
