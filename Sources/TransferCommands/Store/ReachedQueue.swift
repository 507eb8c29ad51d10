import Logging
import TransferControl
import TransferKit

/// A queue that a command has got hold of.
enum ReachedQueue: Sendable {
    /// Opened by this process, which has to shut it down.
    case owned(TransferQueue)
    /// Of a process that answers at the queue's socket.
    case remote(RemoteTransferQueue)
}

extension CommonOptions {
    private static let lookInterval = Duration.milliseconds(50)
    /// How long a command tries again, from when it first lost an owner.
    private static let patience = Duration.seconds(10)

    /// Hands a command the queue: that of the process that owns it, or else one that is opened here and closed in any case.
    ///
    /// - Parameters:
    ///   - isRepeatable: Whether the body may be called again when the owner ended before it had answered everything; not once it has printed.
    ///   - body: What to do.
    func withQueue<Result: Sendable>(
        isRepeatable: @autoclosure () -> Bool = true, _ body: (any ControllableQueue) async throws -> Result
    ) async throws -> Result {
        var deadline: ContinuousClock.Instant?
        while true {
            switch try await reachedQueue() {
            case .owned(let queue): return try await Self.closing(queue) { try await body($0) }
            case .remote(let queue):
                do {
                    return try await body(queue)
                } catch let error as QueueError where error.isEndOfOwner && isRepeatable() && Self.isPatient(&deadline) {
                    continue
                }
            }
        }
    }

    /// Hands a command the process that owns the queue, also one that is just starting or takes another one's place.
    ///
    /// - Returns: What the body does; nil if no process owns the queue.
    func withOwner<Result: Sendable>(_ body: (RemoteTransferQueue) async throws -> Result) async throws -> Result? {
        var deadline: ContinuousClock.Instant?
        while true {
            switch try await reachedQueue() {
            case .owned(let queue):
                // Whoever opens the queue here owns it, so nobody else does.
                await queue.shutdown()
                return nil
            case .remote(let queue):
                do {
                    return try await body(queue)
                } catch let error as QueueError where error.isEndOfOwner && Self.isPatient(&deadline) {
                    continue
                }
            }
        }
    }

    /// Whether to try once more after an owner was lost. What was done until the first loss may have taken any time.
    private static func isPatient(_ deadline: inout ContinuousClock.Instant?) -> Bool {
        let now = ContinuousClock.now
        let end = deadline ?? now + patience
        deadline = end
        return now < end
    }

    /// Opens the queue to run it; the caller shuts it down. To wait for another process that runs it would be to wait for its end.
    ///
    /// - Throws: A `CommandFailure` if another process runs the queue or comes to.
    func openedQueueToRun(sessionLimit: Int?, logger: Logger? = nil) async throws -> TransferQueue {
        while true {
            switch try await reachedQueue(sessionLimit: sessionLimit, logger: logger) {
            case .owned(let queue): return queue
            case .remote(let remote):
                do {
                    throw try refusal(for: await remote.owner())
                } catch let error as QueueError where error.isEndOfOwner {
                    continue
                }
            }
        }
    }

    private func refusal(for owner: QueueOwner) throws -> CommandFailure {
        let isAgent = owner.role == .agent
        return CommandFailure(
            .storage,
            "The queue in \(try folder()) is run by the \(isAgent ? "agent" : "process") \(owner.processID) already. Commands work on it as it runs; to end it: \(isAgent ? "transferq agent stop" : "kill \(owner.processID)")"
        )
    }

    /// Reaches the queue. Its owner may come, answer or go at any moment: whatever works first is taken.
    ///
    /// The parameters are those for a queue that is opened.
    func reachedQueue(sessionLimit: Int? = nil, logger: Logger? = nil) async throws -> ReachedQueue {
        if let remote = try await answeringQueue() { return .remote(remote) }
        return try await withThrowingTaskGroup(of: ReachedQueue?.self) { group in
            group.addTask { .owned(try await openedQueue(sessionLimit: sessionLimit, logger: logger)) }
            group.addTask {
                while (try? await Task.sleep(for: Self.lookInterval)) != nil {
                    if let remote = try await answeringQueue() { return .remote(remote) }
                }
                return nil
            }
            defer { group.cancelAll() }
            let first = try await group.next()
            group.cancelAll()
            while let other = await group.nextResult() {
                // Both at once: what this process owns is the safer one.
                guard case .success(.owned(let queue)?) = other else { continue }
                return .owned(queue)
            }
            guard let reached = first.flatMap(\.self) else { throw CancellationError() }
            return reached
        }
    }

    /// The queue of a process that answers; nil if there is none.
    ///
    /// - Throws: A `QueueError` if there is one that can't be talked to.
    func answeringQueue() async throws -> RemoteTransferQueue? { try await answeringOwner()?.queue }

    /// The queue of a process that answers, and what it says of itself; nil if there is none, or it ends just now.
    ///
    /// - Throws: A `QueueError` if there is one that can't be talked to.
    func answeringOwner() async throws -> (queue: RemoteTransferQueue, owner: QueueOwner)? {
        let remote = RemoteTransferQueue(folder: try folder())
        do {
            return (remote, try await remote.owner())
        } catch let error as QueueError where error.isEndOfOwner {
            return nil
        }
    }
}

extension QueueError {
    /// Whether the process that owned the queue is gone or going, and another one can take its place.
    var isEndOfOwner: Bool { [.ownerUnreachable, .ownerLost, .shutDown].contains(code) }
}
