import Foundation
import GRDB
import TransferCore

/// A remote folder in a session's manifest. The manifest is the stored list of the session's files and folders.
struct RemoteFolder: Sendable {
    var number: Int64
    /// The number of the parent folder; nil if source and destination are complete paths.
    var parent: Int64?
    /// The stored local path; for a folder with a parent, only the folder's name.
    var source: Data
    /// The stored remote path; empty for a folder with a parent.
    var destination: Data
    /// The complete remote path.
    var remotePath: [UInt8]
}

extension QueueStore {
    /// Returns at most `limit` folders of a session's manifest, in the order of their numbers, starting with `number`.
    func remoteFolders(of key: SessionKey, from number: Int64, limit: Int) async throws -> [RemoteFolder] {
        try await read { [sources] db in
            var paths = DirectoryPaths(of: key, sources)
            return try StoredRow.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT number, parent, source, destination FROM directory
                        WHERE session = ? AND number >= ? ORDER BY number LIMIT ?
                        """), arguments: [key, number, limit]
            ).map { row in
                let number = try Self.position(row, atIndex: 0)
                return RemoteFolder(
                    number: number, parent: try row.decode(atIndex: 1), source: try row.decode(atIndex: 2),
                    destination: try row.decode(atIndex: 3), remotePath: try paths.location(of: number, in: db).destination)
            }
        }
    }

    /// Returns the given names that the manifest already contains for a remote folder. Ignores failed files, including the stand-ins for files
    /// and folders whose names can't be stored.
    func knownNames(in folder: Int64, of key: SessionKey, among names: [Data]) async throws -> Set<[UInt8]> {
        try await read { db in
            var known: Set<[UInt8]> = []
            for start in stride(from: 0, to: names.count, by: Self.namesPerQuery) {
                let some = names[start..<min(start + Self.namesPerQuery, names.count)]
                // Repeats a name to reach a fixed number of arguments, so that one cached statement serves any number of names.
                let padded = some + repeatElement(some[start], count: Self.namesPerQuery - some.count)
                known.formUnion(
                    try Data.fetchAll(
                        db.cachedStatement(sql: Self.knownNamesQuery),
                        arguments: StatementArguments([key, folder]) + StatementArguments(padded)
                            + StatementArguments([key, folder]) + StatementArguments(padded)
                    ).map(Array.init))
            }
            return known
        }
    }

    private static let namesPerQuery = 500

    private static let knownNamesQuery = {
        let placeholders = Array(repeating: "?", count: namesPerQuery).joined(separator: ", ")
        return """
            SELECT source FROM file INDEXED BY file_listed
                WHERE kind = 'download' AND directory IS NOT NULL AND state <> 'failed'
                    AND session = ? AND directory = ? AND source IN (\(placeholders))
            UNION ALL SELECT source FROM directory INDEXED BY directory_parent
                WHERE session = ? AND parent = ? AND source IN (\(placeholders))
            """
    }()
}
