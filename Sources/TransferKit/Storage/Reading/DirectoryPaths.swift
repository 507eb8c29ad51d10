import Foundation
import GRDB
import SystemPackage
import TransferCore

/// Builds the paths of the files in a session's manifest, the stored list of its files. Looks up each folder only once.
struct DirectoryPaths {
    struct Location {
        var source: [UInt8]
        var destination: [UInt8]

        func appending(_ name: [UInt8]) -> Location {
            // The remote path of the endpoint's folder itself is empty.
            Location(
                source: source + [UInt8(ascii: "/")] + name,
                destination: destination.isEmpty ? name : destination + [UInt8(ascii: "/")] + name)
        }
    }

    /// The maximum depth of a folder. No valid path is this deep (PATH_MAX, limits.h), but in a damaged database, a folder may contain
    /// itself.
    private static let maximumDepth = 4_096

    private let session: SessionKey
    private let sources: SourceFolders
    private var locations: [Int64: Location] = [:]
    /// The local folder for the session's downloads. The outer optional is nil until the folder has been read; the inner optional is nil if the
    /// session uploads.
    private var folder: [UInt8]??

    init(of session: SessionKey, _ sources: SourceFolders) {
        self.session = session
        self.sources = sources
    }

    /// Returns which symbolic links an item's path may contain, according to the item's stored policy; nil for no restriction.
    func confinement(of path: FilePath, _ policy: String?) -> SourceConfinement? {
        guard let policy = policy.flatMap(SymbolicLinkPolicy.init), policy != .follow else { return nil }
        return SourceConfinement(root: sources.withoutLinks(path), followsFile: policy == .followFiles)
    }

    mutating func location(
        _ kind: ItemKind, directory: Int64?, source: Data, destination: Data, in db: Database
    ) throws -> Location {
        if let directory { return try location(of: directory, in: db).appending([UInt8](source)) }
        if kind.isSpooled {
            guard let path = Spool(folder: sources.spool).path(of: source) else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(session) names a file outside the spool")
            }
            return Location(source: path.bytes, destination: [UInt8](destination))
        }
        let path = kind.isDownload ? try downloadPath([UInt8](source), in: db) : sources.path(kind, [UInt8](source))
        return Location(source: path, destination: [UInt8](destination))
    }

    /// Returns the path of a downloaded file relative to the session's local folder.
    mutating func localName(of location: Location, in db: Database) throws -> [UInt8] {
        guard let folder = try folder(in: db) else { throw missingFolder }
        return [UInt8](location.source.dropFirst(folder.count + 1))
    }

    private mutating func downloadPath(_ name: [UInt8], in db: Database) throws -> [UInt8] {
        guard let folder = try folder(in: db) else { throw missingFolder }
        // The name is empty if the content of a remote folder arrives directly in the session's folder.
        return name.isEmpty ? folder : folder + [UInt8(ascii: "/")] + name
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

    mutating func location(of directory: Int64, in db: Database) throws -> Location {
        let statement = try db.cachedStatement(sql: "SELECT parent, source, destination FROM directory WHERE session = ? AND number = ?")
        var names: [(number: Int64, name: [UInt8])] = []
        var number = directory
        var location: Location
        while true {
            if let found = locations[number] {
                location = found
                break
            }
            guard let row = try StoredRow.fetchOne(statement, arguments: [session, number]) else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(session) has no folder \(number)")
            }
            guard let parent = try row.decode(Int64?.self, atIndex: 0) else {
                let source = [UInt8](try row.decode(Data.self, atIndex: 1))
                let isDownload = try folder(in: db) != nil
                location = Location(
                    source: isDownload ? try downloadPath(source, in: db) : sources.path(.folder, source),
                    destination: [UInt8](try row.decode(Data.self, atIndex: 2)))
                locations[number] = location
                break
            }
            guard names.count < Self.maximumDepth else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(session) has a folder that contains itself")
            }
            names.append((number, [UInt8](try row.decode(Data.self, atIndex: 1))))
            number = parent
        }
        for (number, name) in names.reversed() {
            location = location.appending(name)
            locations[number] = location
        }
        return location
    }
}
