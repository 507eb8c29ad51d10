import Foundation
import GRDB
import SystemPackage
import TransferCore

/// Refuses uploads whose files would replace each other at the server, by what the transports say of two files that have one name.
struct NameCheck: Sendable {
    let transports: [TransportID: any Transport]
    let folders: SourceFolders

    /// Refuses drafts of sessions, or keeps the refusal with a draft that may be there already.
    ///
    /// Files of all sessions of one call count together, save those that may be there already. Blocks.
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

    /// Refuses items that a session gets, and that would replace one of its own or of each other. Blocks.
    ///
    /// - Parameter taken: The session's items that have one of the names.
    func check(_ items: [ItemDraft], after taken: [(name: Data, source: FilePath?)], _ refusal: String) throws(QueueError) {
        var names = RemoteNames()
        for (name, source) in taken { _ = names.add(name, source) }
        if let clash = names.add(items, in: folders) { throw error(clash, refusal) }
    }

    private func error(_ clash: RemoteNameClash, _ refusal: String) -> QueueError {
        QueueError(.invalidRequest, "\(clash), and \(refusal)")
    }

    /// Why a session can't have two files with one name; nil if it can.
    func refusal(of options: SessionOptions, at account: Account) -> String? {
        var asked = AttemptOptions(options, uploadURL: nil)
        let clashes = NameClashes(at: account.endpoints) { endpoint throws(TransferError) in
            try (transports[endpoint.transport] as? any SessionValidating)?.validate(asked, for: .upload, at: endpoint)
        } clash: { endpoint in
            clash(asked, at: endpoint)
        }
        guard let loss = clashes.loss else { return nil }
        asked.overwrite = .rename
        let other = clash(asked, at: loss.endpoint) == .keptApart ? ", or set the session's overwrite policy to rename" : ""
        return "at \(loss.endpoint.location) \(loss.clash.consequence). Give each item a remote name of its own\(other)."
    }

    private func clash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
        (transports[endpoint.transport] as? any FileNaming)?.nameClash(options, at: endpoint) ?? .keptApart
    }
}

extension QueueStore {
    /// The items of a session that were added under one of these remote names, without the content of folders.
    func items(of key: SessionKey, named names: Set<Data>) async throws -> [(name: Data, source: FilePath?)] {
        try await read { [sources] db in
            let rows = try StoredRow.fetchCursor(
                db.cachedStatement(
                    sql: """
                        SELECT destination, kind, source FROM file WHERE session = ?1 AND directory IS NULL
                        UNION ALL SELECT destination, kind, source FROM item WHERE session = ?1 AND directory IS NULL
                        UNION ALL SELECT destination, 'folder', source FROM directory WHERE session = ?1 AND parent IS NULL
                        """), arguments: [key])
            var found: [(name: Data, source: FilePath?)] = []
            while let row = try rows.next() {
                let name: Data = try row.decode(atIndex: 0)
                guard names.contains(name) else { continue }
                let kind = ItemKind(rawValue: try row.decode(atIndex: 1)) ?? .file
                found.append((name, sources.source(of: kind, [UInt8](try row.decode(Data.self, atIndex: 2)))))
            }
            return found
        }
    }
}
