import GRDB
import SystemPackage

/// Makes the database of a member's queue reject all changes until ``accept()``, by holding SQLite's write lock.
final class RefusingDatabase: Sendable {
    private let database: DatabaseQueue

    /// - Parameter folder: The storage folder of the queue.
    init(_ folder: FilePath) async throws {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        // Waits while the queue is in a transaction.
        configuration.busyMode = .timeout(60)
        database = try DatabaseQueue(path: folder.appending("queue.sqlite").string, configuration: configuration)
        try await database.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
    }

    func accept() async throws {
        try await database.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
    }
}
