import Logging
import SystemPackage
import TransferControl
import TransferKit
import TransferOutput

extension CommonOptions {
    /// The time that a command waits for another command to release the queue.
    private static let ownerTimeout = Duration.seconds(10)

    /// Returns the storage folder of the queue.
    ///
    /// - Throws: A `CommandFailure` if the path of the folder is empty or not UTF-8.
    func folder() throws(CommandFailure) -> FilePath { try FolderLocation.folder(option: store?.path) }

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

    /// Opens the queue. The caller must shut it down.
    ///
    /// - Parameters:
    ///   - limits: The limits of this process; nil for the stored limits.
    ///   - logger: The logger of the queue; nil for standard error.
    /// - Throws: A `QueueError`, for example if another process has not released the queue within ``ownerTimeout``.
    func openedQueue(limits: RunLimitOptions? = nil, logger: Logger? = nil) async throws -> TransferQueue {
        let storage = Storage.folder(try folder(), ownerTimeout: Self.ownerTimeout)
        var configuration = QueueConfiguration(logger: logger ?? self.logger)
        configuration.maxConcurrentSessionsOverride = limits?.concurrentSessions
        configuration.diskFloorOverride = limits?.minFree?.bytes
        return try await TransferQueue(
            storage: storage, transports: CommandContext.current.transports.all.map(\.transport), configuration: configuration)
    }
}
