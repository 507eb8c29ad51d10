import Logging
import TransferKit

extension CommonOptions {
    /// How long commands that come together wait for each other.
    private static let ownerTimeout = Duration.seconds(10)

    /// Reaches the queue for a command that works the same whoever owns it.
    func withQueue<Result: Sendable>(_ body: (any QueueAccess) async throws -> Result) async throws -> Result {
        try await withOwnedQueue { try await body($0) }
    }

    /// Opens the queue, hands it to a command, and closes it in any case.
    func withOwnedQueue<Result: Sendable>(_ body: (TransferQueue) async throws -> Result) async throws -> Result {
        let queue = try await openedQueue()
        do {
            let result = try await body(queue)
            await queue.shutdown()
            return result
        } catch {
            await queue.shutdown()
            throw error
        }
    }

    /// Opens the queue; the caller shuts it down.
    ///
    /// - Parameter sessionLimit: How many sessions may be active at once in this process, whatever is stored; nil for what is stored.
    func openedQueue(sessionLimit: Int? = nil) async throws -> TransferQueue {
        let storage = Storage.folder(try StoreLocation.folder(option: store?.path), ownerTimeout: Self.ownerTimeout)
        var configuration = QueueConfiguration(logger: logger)
        configuration.sessionLimitOverride = sessionLimit
        return try await TransferQueue(
            storage: storage, transports: CommandContext.current.transports.make(), configuration: configuration)
    }
}
