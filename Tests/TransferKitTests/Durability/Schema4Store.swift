import Foundation
import GRDB
import SystemPackage
import TransferCore
import TransferKit

/// A store as the fourth version left it: that of the third, what the fourth added, and something to be removed of each kind.
enum Schema4Store {
    static func make(in folder: FilePath) throws {
        try Schema3Store.make(in: folder)
        let pool = try DatabasePool(path: folder.appending("queue.sqlite").string)
        try pool.write { db in
            try db.execute(sql: additions)
            let part = Endpoint(transport: "transferkit-parts", address: "part:memory://a/")
            try db.execute(sql: removals, arguments: ["endpoint": try text(Schema1Store.account.endpoints[0]), "part": try text(part)])
            try db.execute(sql: "INSERT INTO grdb_migrations VALUES ('4'); PRAGMA user_version = 4")
        }
        try pool.close()
    }

    private static func text(_ endpoint: Endpoint) throws -> String {
        String(decoding: try JSONEncoder().encode(endpoint), as: UTF8.self)
    }

    private static let additions = """
        ALTER TABLE item ADD COLUMN next_directory INTEGER;
        CREATE INDEX file_listed ON file(session, directory, source) WHERE kind = 'download' AND directory IS NOT NULL;
        CREATE INDEX directory_parent ON directory(session, parent, source);
        """

    /// What is due, what can't be read, what was put off for a long time, what a run that was killed held, and a part on this machine.
    private static let removals = """
        INSERT INTO discard(key, endpoint, data, confirmed, attempts, next_attempt_at, give_up_at, held_by, position)
            VALUES (1, :endpoint, x'01', 10, 0, 0, 4102444800000, NULL, 0),
                (2, '{', x'02', 20, 0, 0, 4102444800000, NULL, 0),
                (3, :endpoint, x'03', 30, 9, 4102444800000, 4102444800000, NULL, 0),
                (4, :endpoint, x'04', 40, 0, 0, 4102444800000, 9, 0),
                (5, :part, x'05', 0, 0, 0, 4102444800000, NULL, 0);
        """
}
