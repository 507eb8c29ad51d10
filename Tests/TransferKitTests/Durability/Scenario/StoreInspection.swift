import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// A read-only connection to the database in a storage folder. A queue may have the same folder open.
struct StoreInspection {
    private let database: DatabaseQueue

    init(_ folder: FilePath) throws {
        var configuration = Configuration()
        configuration.readonly = true
        database = try DatabaseQueue(path: folder.appending("queue.sqlite").string, configuration: configuration)
    }

    /// An SQL condition: all folders of a session are expanded. A folder that is not expanded counts as one file.
    private static let isExpanded = "NOT EXISTS (SELECT 1 FROM item WHERE session = key)"

    /// Queries that find contradictions in a database. The keys describe the contradictions.
    private static let contradictions = [
        "a session that is not in the schedule": "SELECT key FROM session WHERE key NOT IN (SELECT session FROM schedule)",
        "a schedule row without a session": "SELECT session FROM schedule WHERE session NOT IN (SELECT key FROM session)",
        "a duplicate session ID": "SELECT id FROM schedule GROUP BY id HAVING count(*) > 1",
        "a duplicate rank": "SELECT rank FROM schedule WHERE state != 'draft' GROUP BY rank HAVING count(*) > 1",
        "a wrong number of files":
            "SELECT key FROM session WHERE files != (SELECT count(*) FROM file WHERE session = key AND state != 'skipped') AND \(isExpanded)",
        "a wrong number of bytes":
            "SELECT key FROM session WHERE bytes_total != (SELECT sum(size) FROM file WHERE session = key) AND \(isExpanded)",
        "a wrong number of completed files":
            "SELECT key FROM session WHERE files_done != (SELECT count(*) FROM file WHERE session = key AND state = 'completed')",
        "a wrong number of failed files":
            "SELECT key FROM session WHERE files_failed != (SELECT count(*) FROM file WHERE session = key AND state = 'failed')",
        "a completed session with unfinished files": """
        SELECT key FROM session JOIN schedule ON session = key
        WHERE state = 'completed' AND (completed_at IS NULL OR files_done != files)
        """,
        "totals that differ from the sums over the sessions": """
        SELECT state, sum(files), sum(done), sum(failed), sum(bytes) FROM (
            SELECT state, files, files_done AS done, files_failed AS failed, bytes_total AS bytes
            FROM session JOIN schedule ON session = key
            UNION ALL SELECT state, -files, -files_done, -files_failed, -bytes_total FROM total
        ) GROUP BY state HAVING sum(files) != 0 OR sum(done) != 0 OR sum(failed) != 0 OR sum(bytes) != 0
        """,
        "a running session": "SELECT session FROM schedule WHERE state = 'running'",
        "a checkpoint of a session whose cancellation keeps no sent content":
            "SELECT session FROM checkpoint JOIN schedule USING (session) WHERE state = 'cancelled' AND NOT keeps_partial",
        "a checkpoint of a completed file":
            "SELECT session FROM checkpoint JOIN file USING (session, position) WHERE state = 'completed'",
        "a checkpoint of another generation of its file":
            "SELECT session FROM checkpoint JOIN file USING (session, position) WHERE checkpoint.generation != file.generation",
        "a displaced session whose preemptor is gone or no longer displaces it": """
        SELECT session FROM schedule AS displaced WHERE displaced_by IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM schedule WHERE session = displaced.displaced_by AND state IN ('waiting', 'running', 'paused'))
        """,
        "a session that depends on a missing session":
            "SELECT session FROM schedule WHERE after_id IS NOT NULL AND after_id NOT IN (SELECT id FROM schedule)",
        "a removal that is due before its server accepts requests again":
            "SELECT key FROM discard WHERE next_attempt_at < left_alone_until",
    ]

    func expectNoContradictions(_ comment: Comment) throws {
        let verdict = try database.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") }
        #expect(verdict == "ok", comment)
        for (contradiction, sql) in Self.contradictions {
            let rows = try database.read { try Row.fetchAll($0, sql: sql) }
            #expect(rows.isEmpty, "\(contradiction); \(comment)")
        }
    }

    /// Returns the upload of each checkpoint, and the number of bytes that the checkpoint covers.
    func checkpoints() throws -> [(upload: String, confirmed: Int64)] {
        try database.read { db in
            try Row.fetchAll(db, sql: "SELECT data, confirmed FROM checkpoint").map {
                (String(decoding: $0[0] as Data, as: UTF8.self), $0[1])
            }
        }
    }

    /// Returns the names of the spool files that unsent data items refer to.
    func spooled() throws -> Set<String> {
        try database.read { db in
            Set(
                try Data.fetchAll(
                    db,
                    sql: """
                        SELECT source FROM file WHERE kind = 'blob' AND state <> 'completed'
                        UNION ALL SELECT source FROM item WHERE kind = 'blob'
                        """
                ).map { String(decoding: $0, as: UTF8.self) })
        }
    }

    func count(_ table: String) throws -> Int? {
        try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \(table)") }
    }
}
