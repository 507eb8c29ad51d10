import Dispatch
import Locking

/// Runs calls that may block, for example on a disk or a network share. The calls run outside the cooperative thread pool, whose threads must never
/// block.
///
/// Uses serial dispatch queues, because each serial queue immediately gets its own thread. Dispatch would run a concurrent queue on the threads
/// of the cooperative pool. That pool has only one thread for each core, and dispatch replaces blocked threads only after a second.
package enum BlockingIO {
    /// A group of calls that share threads. If the calls of one lane hang, the other lanes still have their threads.
    package enum Lane: CaseIterable {
        /// Local files of sessions, which may be on a network share that does not respond.
        case files
        /// Removals of part files, which may be on the same network shares.
        case parts
        /// Files and pipes with credentials.
        case credentials
        /// The storage folder.
        case storage

        /// The maximum number of concurrent calls of the lane.
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

    /// Runs a closure on a thread that is allowed to block. Waits while all threads of the lane are in use.
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

/// A set of at most `limit` serial dispatch queues. Further closures wait for a free queue.
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

    /// Runs a closure, and then the waiting closures until none is left.
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
