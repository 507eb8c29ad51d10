import Foundation
import GRDB
import SystemPackage
import TransferCore

/// Rejects uploads whose items have the same remote name, if an endpoint would replace, skip or refuse one of them; see
/// ``NameClashes/loss``. The transports report what happens to two files with the same name.
struct NameCheck: Sendable {
    let transports: [TransportID: any Transport]
    let folders: SourceFolders

    /// Rejects session drafts whose remote names collide. Blocks.
    ///
    /// Compares the names of all drafts for the same account with each other. Drafts with a deduplication key are an exception, because the
    /// store may already contain their sessions. Such a draft is checked only for clashes among its own names, and a clash is recorded in
    /// ``SessionDraft/refusal``. The writer throws that error only if the store has no session with the key.
    func check(_ drafts: inout [SessionDraft], _ accounts: [String: Account]) throws(QueueError) {
        var names: [String: RemoteNames] = [:]
        var last: (account: String, options: SessionOptions, refusal: String?)?
        for index in drafts.indices where drafts[index].direction == .upload {
            let draft = drafts[index]
            guard let account = accounts[draft.account] else { continue }
            if last?.account != draft.account || last?.options != draft.options {
                last = (draft.account, draft.options, refusal(of: draft.options, at: account))
            }
            guard let refusal = last?.refusal else { continue }
            if draft.deduplicationKey == nil {
                if let clash = names[draft.account, default: RemoteNames()].add(draft.items, in: folders) { throw error(clash, refusal) }
            } else if drafts[index].refusal == nil {
                var own = RemoteNames()
                drafts[index].refusal = own.add(draft.items, in: folders).map { error($0, refusal) }
            }
        }
    }

    /// Rejects items whose remote names collide with each other. Blocks.
    ///
    /// - Parameters:
    ///   - items: The new items.
    ///   - existing: The items of the session that have the same remote name as a new item, or as each other.
    ///   - refusal: The second clause of the error message; see ``refusal(of:at:)``.
    func check(_ items: [ItemDraft], after existing: [(name: Data, source: FilePath?)], _ refusal: String) throws(QueueError) {
        var names = RemoteNames()
        for (name, source) in existing {
            if let clash = names.add(name, source) { throw error(clash, refusal) }
        }
        if let clash = names.add(items, in: folders) { throw error(clash, refusal) }
    }

    private func error(_ clash: RemoteNameClash, _ refusal: String) -> QueueError {
        QueueError(.invalidRequest, "\(clash), and \(refusal)")
    }

    /// Returns the consequence of a name collision and its remedy, as the second clause of an error message; nil if collisions are
    /// accepted.
    func refusal(of options: SessionOptions, at account: Account) -> String? {
        var attemptOptions = AttemptOptions(options, uploadURL: nil)
        let clashes = NameClashes(at: account.endpoints) { endpoint throws(TransferError) in
            try (transports[endpoint.transport] as? any SessionValidating)?.validate(attemptOptions, for: .upload, at: endpoint)
        } clash: { endpoint in
            clash(attemptOptions, at: endpoint)
        }
        guard let loss = clashes.loss else { return nil }
        attemptOptions.overwrite = .rename
        let alternative = clash(attemptOptions, at: loss.endpoint) == .bothKept ? ", or set the session's overwrite policy to rename" : ""
        return "at \(loss.endpoint.location) \(loss.clash.consequence). Give each item a different remote name\(alternative)."
    }

    private func clash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
        (transports[endpoint.transport] as? any FileNaming)?.nameClash(options, at: endpoint) ?? .bothKept
    }
}

extension QueueStore {
    /// Returns the items of a session that were added with one of these remote names. Ignores the files and folders inside an added folder.
    ///
    /// - Parameter replaced: Items to leave out.
    func items(
        of key: SessionKey, named names: Set<Data>, besides replaced: ReplaceableItems = ReplaceableItems()
    ) async throws -> [(name: Data, source: FilePath?)] {
        try await read { [sources] db in
            try Self.items(of: key, sources, in: db) { name, position, sequence in
                names.contains(name) && !(position.map(replaced.positions.contains) ?? false)
                    && !(sequence.map(replaced.sequences.contains) ?? false)
            }
        }
    }

    /// Whether the first item of a download session is the endpoint's folder, whose content arrives directly in the download folder. Its local name is
    /// empty, and so is the name of its row in each table.
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

    /// Returns the items of a session whose remote names are not unique. Ignores the files and folders inside an added folder.
    func itemsWithRepeatedNames(of key: SessionKey) async throws -> [(name: Data, source: FilePath?)] {
        try await read { [sources] db in
            let repeated = try Data.fetchSet(
                db.cachedStatement(sql: "SELECT destination FROM (\(Self.namedItems)) GROUP BY destination HAVING count(*) > 1"),
                arguments: [key])
            return repeated.isEmpty ? [] : try Self.items(of: key, sources, in: db) { name, _, _ in repeated.contains(name) }
        }
    }

    /// Returns the URLs of a session's items that have any.
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

    /// Selects the items that were added to a session. Items with an upload URL have no name on the server.
    private static let namedItems = """
        SELECT destination, kind, source, position, NULL FROM file WHERE session = ?1 AND directory IS NULL AND upload_url IS NULL
        UNION ALL SELECT destination, kind, source, NULL, sequence FROM item
            WHERE session = ?1 AND directory IS NULL AND upload_url IS NULL
        UNION ALL SELECT destination, 'folder', source, NULL, NULL FROM directory WHERE session = ?1 AND parent IS NULL
        """

    private static func items(
        of key: SessionKey, _ sources: SourceFolders, in db: Database,
        where isWanted: (_ name: Data, _ position: Int64?, _ sequence: Int64?) -> Bool
    ) throws -> [(name: Data, source: FilePath?)] {
        let rows = try StoredRow.fetchCursor(db.cachedStatement(sql: namedItems), arguments: [key])
        var found: [(name: Data, source: FilePath?)] = []
        while let row = try rows.next() {
            let name: Data = try row.decode(atIndex: 0)
            guard isWanted(name, try row.decode(atIndex: 3), try row.decode(atIndex: 4)) else { continue }
            let kind = ItemKind(rawValue: try row.decode(atIndex: 1)) ?? .file
            found.append((name, sources.source(of: kind, [UInt8](try row.decode(Data.self, atIndex: 2)))))
        }
        return found
    }
}
