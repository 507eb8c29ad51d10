import Dispatch
import TransferKit

/// A connection to a fleet's database. Runs on its own dispatch queue, because calls to libpq block. Reconnects if the connection was lost.
package actor PostgresConnection {
    private final class Executor: SerialExecutor {
        private let queue = DispatchQueue(label: "transferkit.postgresql")

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
        }
    }

    private static let maximumRepetitions = 5

    package nonisolated let url: PostgresURL
    /// Checks a new connection, for example whether the database's tables have the expected version.
    private let check: @Sendable (PostgresLink) throws -> Void
    private let executor = Executor()
    private var link: PostgresLink?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    package init(_ url: PostgresURL, check: @escaping @Sendable (PostgresLink) throws -> Void = { _ in }) {
        self.url = url
        self.check = check
    }

    /// Runs statements in one transaction, on this actor's dispatch queue.
    ///
    /// - Throws: ``QueueError``: the errors of the body and of the connection's check; `invalidRequest` if a value contains a zero byte;
    ///   `statementRejected` if the database rejected a statement, and would reject it again; `storageUnavailable` if the database rejected
    ///   a statement for another reason, has an unreadable value, or can't be reached. If the database can't be reached, the transaction
    ///   may have taken effect.
    package func transaction<Value: Sendable>(_ body: @Sendable (PostgresLink) throws -> Value) throws -> Value {
        try translatingErrors {
            var repetitions = 0
            while true {
                let isFresh = self.link == nil
                let link = try connected()
                var hasBegun = false
                do {
                    try link.execute("BEGIN")
                    hasBegun = true
                    let value = try body(link)
                    try link.execute("COMMIT")
                    return value
                } catch let error as PostgresError where error.isConflict && repetitions < Self.maximumRepetitions {
                    repetitions += 1
                    try link.execute("ROLLBACK")
                } catch {
                    if link.isLost {
                        self.link = nil
                        // The connection was lost before this transaction began, for example because the server was restarted.
                        if !hasBegun, !isFresh { continue }
                    } else {
                        try? link.execute("ROLLBACK")
                    }
                    throw error
                }
            }
        }
    }

    /// Waits at most `timeout` for a notification on this connection's channel, and returns the distinct payloads of all notifications
    /// that have arrived. The check of the connection must have sent `LISTEN`. Blocks this actor's dispatch queue.
    package func awaitNotifications(timeout: Duration) throws -> Set<String> {
        try translatingErrors {
            let link = try connected()
            do {
                return try link.awaitNotifications(timeout: timeout)
            } catch {
                self.link = nil
                throw error
            }
        }
    }

    package func close() {
        link = nil
    }

    private func connected() throws -> PostgresLink {
        if let link, !link.isLost { return link }
        let link = try PostgresLink(url)
        // If a table has no statistics yet, PostgreSQL compiles some statements before it runs them (JIT). Compiling a statement takes a
        // hundred times as long as running it.
        try link.execute(
            "SET TimeZone = 'UTC'; SET jit = off; SET statement_timeout = '7s'; SET idle_in_transaction_session_timeout = '10s'")
        try check(link)
        self.link = link
        return link
    }

    private func translatingErrors<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as PostgresError {
            if error.kind == PostgresError.zeroByte.kind { throw QueueError(.invalidRequest, error.message) }
            throw QueueError(error.isRejection ? .statementRejected : .storageUnavailable, Self.message(for: error, at: url.location))
        }
    }

    private static func message(for error: PostgresError, at location: String) -> String {
        switch error.kind {
        case .connection:
            "Cannot reach the fleet's database at \(location). \(error.message) Check the URL, the password (PGPASSWORD or ~/.pgpass), the server and its connection limits."
        case .statement(state: "42501"):
            "The database user lacks a permission at \(location). \(error.message) See the article \"Running a fleet\"."
        case .statement(state: "25006"):
            "The database at \(location) is read-only. Use the primary server, for example with the option target_session_attrs=read-write."
        case .statement(let state): "The database at \(location) rejected a statement (\(state)). \(error.message)"
        case .unreadable: error.message
        }
    }
}

extension QueueError.Code {
    /// The database rejected a statement, and would reject it again.
    static let statementRejected = Self(rawValue: "statementRejected")
}
