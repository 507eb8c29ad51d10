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
    /// How long a command tries again when owners end under its hands.
    private static let patience = Duration.seconds(10)

    /// Hands a command the queue: that of the process that owns it, or else one that is opened here and closed in any case.
    ///
    /// - Parameters:
    ///   - isRepeatable: Whether the body may be called again when the owner ends before it has answered everything; not if it prints.
    ///   - body: What to do.
    func withQueue<Result: Sendable>(
        isRepeatable: Bool = true, _ body: (any ControllableQueue) async throws -> Result
    ) async throws -> Result {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            switch try await reachedQueue() {
            case .owned(let queue): return try await Self.closing(queue) { try await body($0) }
            case .remote(let queue):
                do {
                    return try await body(queue)
                } catch let error as QueueError where error.isEndOfOwner && isRepeatable && ContinuousClock.now < deadline {
                    continue
                }
            }
        }
    }

    /// Reaches the queue. Its owner may come, answer or go at any moment: whatever works first is taken.
    func reachedQueue() async throws -> ReachedQueue {
        if let remote = try await answeringQueue() { return .remote(remote) }
        return try await withThrowingTaskGroup(of: ReachedQueue?.self) { group in
            group.addTask { .owned(try await openedQueue()) }
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
    /// - Throws: A `CommandFailure` if there is one that can't be talked to.
    func answeringQueue() async throws -> RemoteTransferQueue? {
        let remote = RemoteTransferQueue(folder: try folder())
        do {
            _ = try await remote.owner()
            return remote
        } catch let error as QueueError where error.isEndOfOwner {
            return nil
        }
    }
}

extension QueueError {
    /// Whether the process that owned the queue is gone or going, and another one can take its place.
    var isEndOfOwner: Bool { [.ownerUnreachable, .ownerLost, .shutDown].contains(code) }
}
