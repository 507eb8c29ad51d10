import Logging
import TransferControl
import TransferKit

/// The queue that a command works on: opened in this process, or reached through its owner.
enum ReachedQueue: Sendable {
    /// A queue opened by this process, which must shut it down.
    case owned(TransferQueue)
    /// A queue owned by another process, which responds on the queue's socket.
    case remote(RemoteTransferQueue)
}

extension CommonOptions {
    private static let pollInterval = Duration.milliseconds(50)
    /// The time during which a command is retried after the first loss of an owner.
    private static let retryTimeout = Duration.seconds(10)

    /// Runs a command on the queue through the process that owns it. If no process owns the queue, opens the queue in this process, and
    /// shuts it down afterwards. On a fleet, uses ``CommandContext/queue``.
    ///
    /// - Parameters:
    ///   - isRepeatable: Whether to call the body again if the owner exits before it responds. False once the command has printed
    ///     something.
    ///   - body: The work of the command.
    /// - Throws: The error of the body, or a `QueueError` if the queue can't be opened or reached.
    func withQueue<Result: Sendable>(
        isRepeatable: @autoclosure () -> Bool = true, _ body: (any ControllableQueue) async throws -> Result
    ) async throws -> Result {
        if let queue = CommandContext.current.queue { return try await body(queue) }
        var deadline: ContinuousClock.Instant?
        while true {
            switch try await reachedQueue() {
            case .owned(let queue): return try await Self.closing(queue) { try await body($0) }
            case .remote(let queue):
                do {
                    return try await body(queue)
                } catch let error as QueueError where error.isLossOfOwner && isRepeatable() && Self.mayRetry(&deadline) {
                    continue
                }
            }
        }
    }

    /// Runs a command on the queue of another process. If an owner is starting, or is replacing the previous owner, waits for the new owner.
    ///
    /// - Returns: The result of the body; nil if no process owns the queue.
    func withOwner<Result: Sendable>(_ body: (RemoteTransferQueue) async throws -> Result) async throws -> Result? {
        var deadline: ContinuousClock.Instant?
        while true {
            switch try await reachedQueue() {
            case .owned(let queue):
                // This process has opened the queue, so no other process owns it.
                await queue.shutdown()
                return nil
            case .remote(let queue):
                do {
                    return try await body(queue)
                } catch let error as QueueError where error.isLossOfOwner && Self.mayRetry(&deadline) {
                    continue
                }
            }
        }
    }

    /// Whether to retry after the loss of an owner. The first loss starts the timeout.
    private static func mayRetry(_ deadline: inout ContinuousClock.Instant?) -> Bool {
        let now = ContinuousClock.now
        let end = deadline ?? now + retryTimeout
        deadline = end
        return now < end
    }

    /// Opens the queue to run it. The caller must shut it down.
    ///
    /// - Throws: A `CommandFailure` if another process runs the queue. That process can run indefinitely, so this method does not wait for it.
    func openedQueueToRun(limits: RunLimitOptions, logger: Logger? = nil) async throws -> TransferQueue {
        while true {
            switch try await reachedQueue(limits: limits, logger: logger) {
            case .owned(let queue): return queue
            case .remote(let remote):
                do {
                    throw try refusal(for: await remote.owner())
                } catch let error as QueueError where error.isLossOfOwner {
                    continue
                }
            }
        }
    }

    private func refusal(for owner: QueueOwner) throws -> CommandFailure {
        let isAgent = owner.role.isAgent
        return CommandFailure(
            .storage,
            "\(isAgent ? "The agent (process \(owner.processID))" : "Process \(owner.processID)") already runs the queue in \(try folder()). Other commands work while it runs. To stop it: \(isAgent ? "transferq agent stop" : "kill \(owner.processID)")"
        )
    }

    /// Opens the queue or connects to its owner, whichever succeeds first. Tries both, because owners can start and exit at any time.
    ///
    /// - Parameters:
    ///   - limits: The limits if this process opens the queue; nil for the stored limits.
    ///   - logger: The logger if this process opens the queue; nil for standard error.
    func reachedQueue(limits: RunLimitOptions? = nil, logger: Logger? = nil) async throws -> ReachedQueue {
        try requireStorageFolder()
        if let remote = try await respondingQueue() { return .remote(remote) }
        return try await withThrowingTaskGroup(of: ReachedQueue?.self) { group in
            group.addTask { .owned(try await openedQueue(limits: limits, logger: logger)) }
            group.addTask {
                while (try? await Task.sleep(for: Self.pollInterval)) != nil {
                    if let remote = try await respondingQueue() { return .remote(remote) }
                }
                return nil
            }
            let first = await group.nextResult()
            group.cancelAll()
            while let other = await group.nextResult() {
                // This process can only open a queue that its owner has released, so a response or error of that owner no longer matters.
                guard case .success(.owned(let queue)?) = other else { continue }
                return .owned(queue)
            }
            guard let reached = try first?.get() else { throw CancellationError() }
            return reached
        }
    }

    /// Connects to the owner of the queue. Returns nil if there is no owner, or the owner is exiting.
    ///
    /// - Throws: A `QueueError` if communication with an owner fails.
    func respondingQueue() async throws -> RemoteTransferQueue? { try await respondingOwner()?.queue }

    /// Connects to the owner of the queue, and also returns a description of the owner. Returns nil if there is no owner, or the owner is
    /// exiting.
    ///
    /// - Throws: A `QueueError` if communication with an owner fails.
    func respondingOwner() async throws -> (queue: RemoteTransferQueue, owner: QueueOwner)? {
        try requireStorageFolder()
        let remote = RemoteTransferQueue(folder: try folder())
        do {
            return (remote, try await remote.owner())
        } catch let error as QueueError where error.isLossOfOwner {
            return nil
        }
    }
}

extension CommonOptions {
    /// Checks that the command works on the queue in a storage folder, and not on a fleet (a queue in a PostgreSQL database).
    ///
    /// - Throws: A `CommandFailure` otherwise.
    private func requireStorageFolder() throws(CommandFailure) {
        guard CommandContext.current.queue == nil else {
            throw CommandFailure(.usage, "This command needs a queue in a storage folder. It can't be used with --fleet.")
        }
    }
}

extension QueueError {
    /// Whether the owner of the queue has exited or is exiting, so that another process can become the owner.
    var isLossOfOwner: Bool { [.ownerUnreachable, .ownerLost, .shutDown].contains(code) }
}
