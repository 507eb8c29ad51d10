import Foundation
import SystemPackage
import TransferCore

/// Makes rows for the manifest of what a transport lists of one remote folder, and holds no more of it than 16,384 entries.
///
/// Nothing that a server says is relied on: each name has to be a single one, no name counts twice, and there is an end to how many there are.
actor FolderCatalogue {
    /// Takes rows, and makes them durable before it returns unless they are the folder's last.
    typealias Receiver = @Sendable (ManifestBatch, _ areLast: Bool) async throws -> Void

    /// What there may be in all, and where the next rows go.
    struct Place: Sendable {
        var position: Int64
        var directory: Int64
        /// How many bytes the sizes that servers list may still come to: sums of what they make up must not overflow.
        var bytes: Int64
    }

    private static let chunk = 16_384
    private static let batch = 1_000
    /// Servers may list a name a second time while somebody renames things there; those that do it all the time have no end.
    private static let mostRepeats = 1_000
    /// What some servers list of the folder itself and of the one that it is in.
    private static let ownNames: [[UInt8]] = [[UInt8(ascii: ".")], [UInt8(ascii: "."), UInt8(ascii: ".")]]
    /// PATH_MAX (limits.h), which no server's path is longer than.
    private static let longestPath = 4_096

    private let folder: ListedFolder
    private let key: SessionKey
    private let store: QueueStore
    /// How many names a session may have from remote folders.
    private let mostNames: Int64
    private let receiver: Receiver
    private var entries: [RemoteEntry] = []
    private var repeats = 0
    private var failure: (any Error)?
    private(set) var place: Place
    private(set) var totals = ManifestTotals()
    /// Whether the receiver was given anything.
    private(set) var hasRows = false

    init(
        of folder: ListedFolder, _ key: SessionKey, in store: QueueStore, at place: Place, mostNames: Int64, receiver: @escaping Receiver
    ) {
        self.folder = folder
        self.key = key
        self.store = store
        self.place = place
        self.mostNames = mostNames
        self.receiver = receiver
    }

    /// Takes entries as the transport hands them over.
    ///
    /// - Throws: ``TransferError`` if the listing can't be right, `CancellationError`, ``QueueError``; all later calls throw the same.
    func take(_ listed: [RemoteEntry]) async throws {
        try check()
        for entry in listed {
            if Self.ownNames.contains(entry.name) {
                try noteRepeat(of: entry)
                continue
            }
            entries.append(entry)
            if entries.count >= Self.chunk { try await store(isLast: false) }
        }
    }

    /// - Throws: What the listing failed with on this side.
    func check() throws {
        if let failure { throw failure }
    }

    /// The listing has come to its end: the last rows go to the receiver.
    func finish() async throws {
        try await store(isLast: true)
    }

    /// What the listing failed with on this side.
    var ownFailure: (any Error)? { failure }

    private func store(isLast: Bool) async throws {
        do {
            try check()
            try Task.checkCancellation()
            var chunk = entries
            entries = []
            chunk.sort { $0.name.lexicographicallyPrecedes($1.name) }
            let known = hasRows ? try await store.knownNames(in: folder.number, of: key, among: chunk.map { Data($0.name) }) : []
            var batch = ManifestBatch()
            if !hasRows {
                batch.directories.append(contentsOf: ownRow)
                hasRows = isLast || !chunk.isEmpty
            }
            var last: [UInt8]?
            for entry in chunk {
                guard entry.name != last, !known.contains(Data(entry.name)) else {
                    try noteRepeat(of: entry)
                    continue
                }
                last = entry.name
                try add(entry, to: &batch)
                guard batch.count >= Self.batch else { continue }
                try await receiver(batch, false)
                batch = ManifestBatch()
            }
            if batch.count > 0 { try await receiver(batch, isLast) }
        } catch {
            if failure == nil { failure = error }
            throw error
        }
    }

    /// Of the item itself, which is not in the manifest before it is listed.
    private var ownRow: [ManifestDirectory] {
        guard folder.number == place.directory else { return [] }
        place.directory += 1
        return [ManifestDirectory(number: folder.number, parent: folder.parent, source: folder.source, destination: folder.destination)]
    }

    private func noteRepeat(of entry: RemoteEntry) throws {
        repeats += 1
        guard repeats > Self.mostRepeats else { return }
        let error = TransferError(
            .permanent, .badAnswer,
            "The server lists the same names in \(shownFolder) again and again, such as \"\(Self.shown(entry.name))\"; nothing of it is received."
        )
        failure = error
        throw error
    }

    private func add(_ entry: RemoteEntry, to batch: inout ManifestBatch) throws {
        guard place.position + place.directory < mostNames else {
            throw TransferError(
                .permanent, .tooLarge,
                "The server lists more names in \(shownFolder) than a session takes, which is \(mostNames) in all; download its folders one by one."
            )
        }
        if let problem = problem(with: entry.name) {
            let error = TransferError(
                .permanent, .unsafeName,
                "The server lists a name in \(shownFolder) that \(problem): \"\(Self.shown(entry.name))\". It is not received.")
            return append(Self.replacement(for: entry.name), state: .failed, error: error, isStandIn: true, &batch)
        }
        switch entry.kind {
        case .file(let size):
            let size = size.flatMap { (0...place.bytes).contains($0) ? $0 : nil }
            place.bytes -= size ?? 0
            append(entry.name, size: size, &batch)
        case .folder:
            batch.directories.append(
                ManifestDirectory(number: place.directory, parent: folder.number, source: Data(entry.name), destination: Data()))
            place.directory += 1
        case .symbolicLink: skip(entry.name, "a symbolic link", &batch)
        case .other: skip(entry.name, "neither a file nor a folder", &batch)
        }
    }

    private func skip(_ name: [UInt8], _ what: String, _ batch: inout ManifestBatch) {
        let message = "\(shownFolder)/\(Self.shown(name)) is \(what) at the server, and is not received."
        append(name, state: .skipped, error: TransferError(.unsupported, .notARegularFile, message), &batch)
    }

    private func append(
        _ name: [UInt8], size: Int64? = 0, state: ItemState = .pending, error: TransferError? = nil, isStandIn: Bool = false,
        _ batch: inout ManifestBatch
    ) {
        batch.entries.append(
            ManifestEntry(
                position: place.position, directory: folder.number, kind: .download, source: Data(name), destination: Data(),
                size: size ?? 0, isUnsized: size == nil, state: state, error: error, isStandIn: isStandIn))
        place.position += 1
        guard state != .skipped else { return }
        totals.files += 1
        totals.bytes += size ?? 0
        if size == nil { totals.unsized += 1 }
        if state == .failed { totals.failed += 1 }
    }

    /// Why a name can't be that of something in its folder, here or there.
    private func problem(with name: [UInt8]) -> String? {
        if name.isEmpty { return "is empty" }
        if name.contains(0) { return "holds a NUL byte" }
        if name.contains(UInt8(ascii: "/")) { return "leads to another folder" }
        if folder.remotePath.count + 1 + name.count > Self.longestPath { return "makes too long a path" }
        return nil
    }

    /// A name to store in place of one that can't be stored.
    private static func replacement(for name: [UInt8]) -> [UInt8] {
        let safe = name.prefix(255).map { $0 == 0 || $0 == UInt8(ascii: "/") ? UInt8(ascii: "_") : $0 }
        return safe.isEmpty ? [UInt8(ascii: "_")] : safe
    }

    private var shownFolder: String { Self.shown(folder.remotePath) }

    private static func shown(_ name: [UInt8]) -> String {
        let text = String(decoding: name.prefix(200), as: UTF8.self)
        return name.count > 200 ? text + "…" : text
    }
}
