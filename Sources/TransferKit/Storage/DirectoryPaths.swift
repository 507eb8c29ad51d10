import Foundation
import GRDB
import SystemPackage
import TransferCore

/// Makes the paths of a session's manifest: finds each folder once, however many of its files are asked for.
struct DirectoryPaths {
    struct Location {
        var source: [UInt8]
        var destination: [UInt8]
        /// How many bytes of the source name the folder that the item was found in; nil if it was named itself.
        var rootLength: Int?

        func appending(_ name: [UInt8]) -> Location {
            Location(
                source: source + [UInt8(ascii: "/")] + name, destination: destination + [UInt8(ascii: "/")] + name,
                rootLength: rootLength ?? source.count)
        }

        /// Which links may lead to the item, by the policy that is stored with it; nil if all may.
        func confinement(_ policy: String?) -> SourceConfinement? {
            guard let rootLength, let policy = policy.flatMap(SymbolicLinkPolicy.init), policy != .follow else { return nil }
            return SourceConfinement(root: FilePath(bytes: source.prefix(rootLength)), followsFile: policy == .followFiles)
        }
    }

    /// No path is as long (PATH_MAX, limits.h); only in a damaged store a folder is in itself.
    private static let deepest = 4_096

    private let session: SessionKey
    private let sources: SourceFolders
    private var known: [Int64: Location] = [:]
    /// Where the session's downloads go, once that was asked for; nil in it if it uploads.
    private var folder: [UInt8]??

    init(of session: SessionKey, _ sources: SourceFolders) {
        self.session = session
        self.sources = sources
    }

    /// Where an item is and goes, by what is stored of it.
    mutating func location(
        _ kind: ItemKind, directory: Int64?, source: Data, destination: Data, in db: Database
    ) throws -> Location {
        if let directory { return try location(of: directory, in: db).appending([UInt8](source)) }
        if kind == .blob || kind == .stream {
            guard let path = Spool(folder: sources.spool).path(of: source) else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(session) names a file that is not in the spool")
            }
            return Location(source: path.bytes, destination: [UInt8](destination))
        }
        let path = kind.isReceived ? try received([UInt8](source), in: db) : sources.path(kind, [UInt8](source))
        return Location(source: path, destination: [UInt8](destination))
    }

    /// The part of a received file's path that is below the session's folder.
    mutating func localName(of location: Location, in db: Database) throws -> [UInt8] {
        guard let folder = try folder(in: db) else { throw missingFolder }
        return [UInt8](location.source.dropFirst(folder.count + 1))
    }

    private mutating func received(_ name: [UInt8], in db: Database) throws -> [UInt8] {
        guard let folder = try folder(in: db) else { throw missingFolder }
        return folder + [UInt8(ascii: "/")] + name
    }

    private var missingFolder: DatabaseError {
        DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(session) has no folder for its downloads")
    }

    private mutating func folder(in db: Database) throws -> [UInt8]? {
        if let folder { return folder }
        let stored = try Data.fetchOne(db.cachedStatement(sql: "SELECT folder FROM session WHERE key = ?"), arguments: [session])
        let path = stored.map { sources.path(.folder, [UInt8]($0)) }
        folder = .some(path)
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
            guard let row = try StoredRow.fetchOne(statement, arguments: [session, number]) else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(session) has no folder \(number)")
            }
            guard let parent = try row.decode(Int64?.self, atIndex: 0) else {
                let source = [UInt8](try row.decode(Data.self, atIndex: 1))
                let isReceived = try folder(in: db) != nil
                location = Location(
                    source: isReceived ? try received(source, in: db) : sources.path(.folder, source),
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
