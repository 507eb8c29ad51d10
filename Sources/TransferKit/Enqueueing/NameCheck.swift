import Foundation
import GRDB
import SystemPackage
package import TransferCore

/// Rejects uploads whose items have the same remote name, if an endpoint would replace, skip or reject one of them; see
/// ``NameClashes/loss(ofContents:)``. The transports report what happens to two files with the same name.
package struct NameCheck: Sendable {
    let transports: [TransportID: any Transport]
    let folders: SourceFolders

    package init(transports: [TransportID: any Transport], folders: SourceFolders) {
        self.transports = transports
        self.folders = folders
    }

    /// Rejects session drafts whose remote names clash. Blocks.
    ///
    /// Compares the names of all drafts for the same account with each other. Drafts with a deduplication key are an exception, because the
    /// queue may already contain their sessions. For such a draft, this method compares only the draft's own names with each other, and stores
    /// the error in ``SessionDraft/refusal``. The scheduler throws that error only if the queue has no session with the key.
    package func check(_ drafts: inout [SessionDraft], _ accounts: [String: Account]) throws(QueueError) {
        var names: [String: RemoteNames] = [:]
        var last: (account: String, options: SessionOptions, refusal: NameRefusal?)?
        for index in drafts.indices where drafts[index].direction == .upload {
            let draft = drafts[index]
            guard let account = accounts[draft.account] else { continue }
            if last?.account != draft.account || last?.options != draft.options {
                last = (draft.account, draft.options, refusal(of: draft.options, at: account))
            }
            guard let refusal = last?.refusal else { continue }
            if draft.deduplicationKey == nil {
                try refusal.check(draft.items, in: folders, &names[draft.account, default: RemoteNames()])
            } else if drafts[index].refusal == nil {
                var own = RemoteNames()
                do throws(QueueError) {
                    try refusal.check(draft.items, in: folders, &own)
                } catch {
                    drafts[index].refusal = error
                }
            }
        }
    }

    /// Rejects items whose remote names clash with each other or with those of existing items. Blocks.
    ///
    /// - Parameters:
    ///   - items: The new items.
    ///   - existing: The items of the session whose remote names may clash with the names of a new item, or with each other.
    ///   - refusal: The clashes to reject; see ``refusal(of:at:)``.
    func check(_ items: [ItemDraft], after existing: [NamedItem], _ refusal: NameRefusal) throws(QueueError) {
        var names = RemoteNames()
        for item in existing {
            if let clash = names.add(item.name, item.source, isFolder: item.isFolder), refusal.refuses(clash) { throw refusal.error(clash) }
        }
        try refusal.check(items, in: folders, &names)
    }

    /// Returns the name clashes to reject at an account; nil if all clashes are accepted.
    func refusal(of options: SessionOptions, at account: Account) -> NameRefusal? {
        var attemptOptions = AttemptOptions(options, uploadURL: nil)
        let clashes = NameClashes(at: account.endpoints) { endpoint throws(TransferError) in
            try (transports[endpoint.transport] as? any SessionValidating)?.validate(attemptOptions, for: .upload, at: endpoint)
        } clash: { endpoint in
            clash(attemptOptions, at: endpoint)
        }
        guard let loss = clashes.loss(ofContents: false) else { return nil }
        attemptOptions.overwrite = .rename
        let contents = clashes.loss(ofContents: true)
        return NameRefusal(
            loss: loss, lossOfContents: contents,
            isKeptByRenaming: clash(attemptOptions, at: (contents ?? loss).endpoint) == .bothKept)
    }

    private func clash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
        (transports[endpoint.transport] as? any FileNaming)?.nameClash(options, at: endpoint) ?? .bothKept
    }
}

/// The name clashes that are rejected at an account, and the reason.
struct NameRefusal: Sendable {
    /// An endpoint at which a clash is an error, and what would happen there.
    typealias Loss = (endpoint: Endpoint, clash: NameClash)

    /// The reason to reject a clash of the items themselves.
    let loss: Loss
    /// The reason to reject a clash with ``RemoteNameClash/isOfContents``; nil to accept such a clash.
    let lossOfContents: Loss?
    /// Whether the overwrite policy `rename` would keep all files.
    let isKeptByRenaming: Bool

    func refuses(_ clash: RemoteNameClash) -> Bool { !clash.isOfContents || lossOfContents != nil }

    func error(_ clash: RemoteNameClash) -> QueueError {
        let loss = clash.isOfContents ? lossOfContents ?? loss : loss
        let alternative = isKeptByRenaming ? ", or set the session's overwrite policy to rename" : ""
        return QueueError(
            .invalidRequest,
            "\(clash), and at \(loss.endpoint.location) \(clash.consequence(loss.clash)). \(clash.remedy)\(alternative).")
    }

    /// Adds the names of items to `names`. Blocks.
    ///
    /// - Throws: The error for the first rejected clash.
    func check(_ items: [ItemDraft], in folders: SourceFolders, _ names: inout RemoteNames) throws(QueueError) {
        if let clash = names.add(items, in: folders, refusing: refuses) { throw error(clash) }
    }
}

/// An item of a stored session, with the properties that determine whether its remote name clashes with another name.
struct NamedItem: Sendable {
    var name: Data
    /// The local file or folder; nil for in-memory data and streams.
    var source: FilePath?
    var isFolder: Bool
}

extension QueueStore {
    /// Returns the items of a session whose remote names can clash with the given names. These are items with one of the names, items
    /// with a name inside one of the names, and items whose name is a folder that contains one of the names. Ignores the files and folders
    /// inside an added folder.
    ///
    /// - Parameter replaced: Items to omit.
    func items(
        of key: SessionKey, near names: Set<NameKey>, excluding replaced: ReplaceableItems = ReplaceableItems()
    ) async throws -> [NamedItem] {
        let folders = Set(names.lazy.flatMap { RemoteNames.folders(above: $0.name) }.map(NameKey.init))
        return try await read { [sources] db in
            try Self.items(of: key, sources, in: db) { name, position, sequence in
                let isNear =
                    names.contains(NameKey(name)) || folders.contains(NameKey(name))
                    || RemoteNames.folders(above: name).contains { names.contains(NameKey($0)) }
                return isNear
                    && !(position.map(replaced.positions.contains) ?? false) && !(sequence.map(replaced.sequences.contains) ?? false)
            }
        }
    }

    /// Whether the first item of a download session is the endpoint's folder, whose content arrives directly in the download folder. The endpoint's
    /// folder has no local name, so its row has an empty `source` in each table.
    func hasEndpointFolder(_ key: SessionKey) async throws -> Bool {
        try await read { db in
            try Bool.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT ifnull((SELECT kind = ?2 AND source = x'' FROM item WHERE session = ?1 ORDER BY sequence LIMIT 1), 0)
                            OR ifnull((SELECT kind = ?2 AND source = x'' FROM file WHERE session = ?1 ORDER BY position LIMIT 1), 0)
                            OR EXISTS (SELECT 1 FROM directory WHERE session = ?1 AND parent IS NULL AND source = x'')
                        """), arguments: [key, ItemKind.remoteFolder.rawValue]) == true
        }
    }

    /// Returns the items of a session whose remote names can clash with each other. These are items with the same name, added folders, and items
    /// with a name inside an added folder's name. Ignores the files and folders inside an added folder. Returns no items if no names can clash.
    func itemsWithClashingNames(of key: SessionKey) async throws -> [NamedItem] {
        try await read { [sources] db in
            let rows = try StoredRow.fetchCursor(
                db.cachedStatement(
                    sql: """
                        SELECT destination, max(kind = 'folder') FROM (\(Self.namedItems)) GROUP BY destination
                            HAVING count(*) > 1 OR max(kind = 'folder')
                        """), arguments: [key])
            var (names, folders): (Set<NameKey>, Set<NameKey>) = ([], [])
            while let row = try rows.next() {
                let name: Data = try row.decode(atIndex: 0)
                names.insert(NameKey(name))
                if try row.decode(Bool.self, atIndex: 1) { folders.insert(NameKey(name)) }
            }
            guard !names.isEmpty else { return [] }
            let items = try Self.items(of: key, sources, in: db) { name, _, _ in
                names.contains(NameKey(name))
                    || !folders.isEmpty && RemoteNames.folders(above: name).contains { folders.contains(NameKey($0)) }
            }
            return items.count > 1 ? items : []
        }
    }

    /// Returns the upload URLs and creation URLs of a session's items. Omits items without such a URL.
    func itemURLs(of key: SessionKey) async throws -> [(upload: Capability?, creation: Capability?)] {
        try await read { db in
            try StoredRow.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT upload_url, creation_url FROM file WHERE session = ?1 AND coalesce(upload_url, creation_url) IS NOT NULL
                        UNION SELECT upload_url, creation_url FROM item
                            WHERE session = ?1 AND coalesce(upload_url, creation_url) IS NOT NULL
                        """), arguments: [key]
            ).map {
                (
                    upload: try $0.decode(String?.self, atIndex: 0).map(Capability.init),
                    creation: try $0.decode(String?.self, atIndex: 1).map(Capability.init)
                )
            }
        }
    }

    /// Selects the items that were added to a session. Omits items with an upload URL, because they have no name on the server. A folder that the
    /// queue has begun to read is selected from `directory`; its row in `item`, which has a `place`, is omitted.
    private static let namedItems = """
        SELECT destination, kind, source, position, NULL FROM file WHERE session = ?1 AND directory IS NULL AND upload_url IS NULL
        UNION ALL SELECT destination, 'folder', source, NULL, NULL FROM directory WHERE session = ?1 AND parent IS NULL
        UNION ALL SELECT destination, kind, source, NULL, sequence FROM item
            WHERE session = ?1 AND directory IS NULL AND upload_url IS NULL AND place IS NULL
        """

    private static func items(
        of key: SessionKey, _ sources: SourceFolders, in db: Database,
        where isWanted: (_ name: Data, _ position: Int64?, _ sequence: Int64?) -> Bool
    ) throws -> [NamedItem] {
        let rows = try StoredRow.fetchCursor(db.cachedStatement(sql: namedItems), arguments: [key])
        var found: [NamedItem] = []
        while let row = try rows.next() {
            let name: Data = try row.decode(atIndex: 0)
            guard isWanted(name, try row.decode(atIndex: 3), try row.decode(atIndex: 4)) else { continue }
            let kind = ItemKind(rawValue: try row.decode(atIndex: 1)) ?? .file
            let source = sources.source(of: kind, [UInt8](try row.decode(Data.self, atIndex: 2)))
            found.append(NamedItem(name: name, source: source, isFolder: kind == .folder))
        }
        return found
    }
}
