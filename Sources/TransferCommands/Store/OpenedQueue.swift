import Logging
import SystemPackage
import TransferControl
import TransferKit

extension CommonOptions {
    /// How long commands that come together wait for each other.
    private static let ownerTimeout = Duration.seconds(10)

    /// Where the queue is kept.
    func folder() throws(CommandFailure) -> FilePath { try StoreLocation.folder(option: store?.path) }

    /// Hands an opened queue to a command, and closes it in any case.
    static func closing<Result: Sendable>(
        _ queue: TransferQueue, after body: (TransferQueue) async throws -> Result
    ) async throws -> Result {
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
    /// - Parameters:
    ///   - sessionLimit: How many sessions may be active at once in this process, whatever is stored; nil for what is stored.
    ///   - logger: Where the queue logs to; nil for standard error.
    func openedQueue(sessionLimit: Int? = nil, logger: Logger? = nil) async throws -> TransferQueue {
        let storage = Storage.folder(try folder(), ownerTimeout: Self.ownerTimeout)
        var configuration = QueueConfiguration(logger: logger ?? self.logger)
        configuration.sessionLimitOverride = sessionLimit
        return try await TransferQueue(
            storage: storage, transports: CommandContext.current.transports.make(), configuration: configuration)
    }
}
