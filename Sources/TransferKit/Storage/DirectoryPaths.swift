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

    /// No path is as long (PATH_MAX, limits.h); only in a damaged store a folder is in itself.
    private static let deepest = 4_096

    private let session: SessionKey
    private let sources: SourceFolders
    private var known: [Int64: Location] = [:]
    /// Where the session's downloads go, once that was asked for.
    private var folder: [UInt8]?

    init(of session: SessionKey, _ sources: SourceFolders) {
        self.session = session
        self.sources = sources
    }

    /// Where an item is and goes, by what is stored of it.
    mutating func location(
        _ kind: ItemKind, directory: Int64?, source: Data, destination: Data, in db: Database
    ) throws -> Location {
        if kind == .download {
            return Location(source: try folder(in: db) + [UInt8(ascii: "/")] + [UInt8](source), destination: [UInt8](destination))
        }
        guard let directory else { return Location(source: sources.path(kind, [UInt8](source)), destination: [UInt8](destination)) }
        return try location(of: directory, in: db).appending([UInt8](source))
    }

    private mutating func folder(in db: Database) throws -> [UInt8] {
        if let folder { return folder }
        let stored = try Data.fetchOne(db.cachedStatement(sql: "SELECT folder FROM session WHERE key = ?"), arguments: [session])
        guard let stored else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(session) has no folder for its downloads")
        }
        let path = sources.path(.folder, [UInt8](stored))
        folder = path
        return path
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
            guard let parent = try row.decode(Int64?.self, atIndex: 0) else {
                location = Location(
                    source: sources.path(.folder, [UInt8](try row.decode(Data.self, atIndex: 1))),
                    destination: [UInt8](try row.decode(Data.self, atIndex: 2)))
                known[number] = location
                break
            }
            guard names.count < Self.deepest else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(session) has a folder within itself")
            }
            names.append((number, [UInt8](try row.decode(Data.self, atIndex: 1))))
            number = parent
        }
        for (number, name) in names.reversed() {
            location = location.appending(name)
            known[number] = location
        }
        return location
    }
}
