import Logging
import TransferKit

extension CommonOptions {
    /// How long commands that come together wait for each other.
    private static let ownerTimeout = Duration.seconds(10)

    /// Opens the queue, hands it to a command, and closes it in any case.
    func withQueue<Result: Sendable>(
        _ body: (TransferQueue) async throws -> Result
    ) async throws -> Result {
        let storage = Storage.folder(try StoreLocation.folder(option: store?.path), ownerTimeout: Self.ownerTimeout)
        let queue = try await TransferQueue(
            storage: storage, transports: CommandContext.current.transports.make(),
            configuration: QueueConfiguration(logger: logger))
        do {
            let result = try await body(queue)
            await queue.shutdown()
            return result
        } catch {
            await queue.shutdown()
            throw error
        }
    }
}

extension TransferQueue {
    private nonisolated static var page: Int { 4_096 }

    /// Reads the sessions in order, a page at a time, until the body returns false.
    nonisolated func forEachSession(_ body: (SessionStatus) async throws -> Bool) async throws {
        var start = 0
        while true {
            let sessions = try await sessions(start..<start + Self.page)
            for session in sessions {
                guard try await body(session) else { return }
            }
            guard sessions.count == Self.page else { return }
            start += Self.page
        }
    }
}
