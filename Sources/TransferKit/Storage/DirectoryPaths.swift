import Foundation
import GRDB

/// Makes the paths of a session's manifest: finds each folder once, however many of its files are asked for.
struct DirectoryPaths {
    struct Location {
        var source: [UInt8]
        var destination: [UInt8]

        func appending(_ name: [UInt8]) -> Location {
            Location(source: source + [UInt8(ascii: "/")] + name, destination: destination + [UInt8(ascii: "/")] + name)
        }
    }

    private let session: SessionKey
    private let sources: SourceFolders
    private var known: [Int64: Location] = [:]

    init(of session: SessionKey, _ sources: SourceFolders) {
        self.session = session
        self.sources = sources
    }

    /// Where an item is and goes, by what is stored of it.
    mutating func location(
        _ kind: ItemKind, directory: Int64?, source: Data, destination: Data, in db: Database
    ) throws -> Location {
        guard let directory else { return Location(source: sources.path(kind, [UInt8](source)), destination: [UInt8](destination)) }
        return try location(of: directory, in: db).appending([UInt8](source))
    }

    /// Where a folder is and goes.
    mutating func location(of directory: Int64, in db: Database) throws -> Location {
        let statement = try db.cachedStatement(sql: "SELECT parent, source, destination FROM directory WHERE session = ? AND number = ?")
        var names: [(number: Int64, name: [UInt8])] = []
        var number = directory
        var location: Location
        while true {
            if let found = known[number] {
                location = found
                break
            }
            guard let row = try Row.fetchOne(statement, arguments: [session, number]) else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(session) has no folder \(number)")
            }
            guard let parent = row[0] as Int64? else {
                location = Location(source: sources.path(.folder, [UInt8](row[1] as Data)), destination: [UInt8](row[2] as Data))
                known[number] = location
                break
            }
            names.append((number, [UInt8](row[1] as Data)))
            number = parent
        }
        for (number, name) in names.reversed() {
            location = location.appending(name)
            known[number] = location
        }
        return location
    }
}
