import Foundation
package import SystemPackage
import TransferCore

extension QueueStore {
    /// Creates a ``SessionDraft`` for each request: checks the request and its local files, and chooses missing names. Writes in-memory data
    /// and copies of files to the spool. If a draft is not stored, the caller must call ``discardBlobs(of:)``.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest`, `fileExists`, `unreadableItems` or `storageUnavailable`; `CancellationError` if the
    ///   task is cancelled during a copy. After an error, no new file remains in the spool.
    func drafts(of requests: [SessionRequest]) async throws -> [SessionDraft] {
        let folder = requests.lazy.compactMap(\.localFolder).first
        return try await writingDrafts(in: folder) { [sources, spool] cancellation in
            var drafting = ItemDrafting(sources)
            var drafts: [SessionDraft] = []
            drafts.reserveCapacity(requests.count)
            for request in requests { drafts.append(try SessionDraft(request, &drafting)) }
            try drafting.finish()
            var names = try spool.write(drafting.spoolContents, cancellation)[...]
            if !names.isEmpty {
                for index in drafts.indices { names = drafts[index].items.assignSpoolNames(names) }
            }
            return drafts
        }
    }

    /// Runs a closure that creates drafts and can copy files, on a thread that is allowed to block. If the task is cancelled, the copies stop, and
    /// the closure throws `CancellationError`.
    ///
    /// - Parameter folder: The folder of the local files; nil for requests without local files. The folder identifies the disk, to limit
    ///   the number of threads that a hanging disk can block.
    func writingDrafts<Drafts: Sendable>(
        in folder: FilePath?, _ body: @escaping @Sendable (CopyCancellation) throws -> Drafts
    ) async throws -> Drafts {
        try await CopyCancellation.run { cancellation in
            try await BlockingIO.run(for: folder.map { .folder($0) }) { try body(cancellation) }
        }
    }
}

extension SessionDraft {
    /// Creates drafts for sessions that other hosts run: checks the requests and their local files, and chooses missing names. Uses no database and
    /// no spool.
    ///
    /// The drafts of in-memory data and copies have no content, so the caller must reject them (``ItemKind/isSpooled``).
    ///
    /// - Parameters:
    ///   - requests: The requests.
    ///   - folder: The folder to which relative paths refer.
    /// - Throws: ``QueueError`` with the code `invalidRequest`, `fileExists` or `unreadableItems`.
    package static func withoutStore(_ requests: [SessionRequest], relativeTo folder: FilePath = .workingFolder) async throws
        -> [SessionDraft]
    {
        try await BlockingIO.run(for: requests.lazy.compactMap(\.localFolder).first.map { .folder($0) }) {
            var drafting = ItemDrafting(SourceFolders(base: nil, spool: "/", workingFolder: folder), resolvesLinks: false)
            var drafts: [SessionDraft] = []
            for request in requests {
                let draft = try SessionDraft(request, &drafting)
                if let refusal = draft.refusal { throw refusal }
                drafts.append(draft)
            }
            try drafting.finish()
            return drafts
        }
    }
}

extension SessionRequest {
    /// The download folder, or the folder of the first local file; nil for an upload without a local file.
    var localFolder: FilePath? { folder ?? items.localFolder }
}

extension [TransferItem] {
    /// The folder of the first local file; nil if no item is a local file.
    var localFolder: FilePath? { lazy.compactMap(\.firstSource).first?.removingLastComponent() }
}

extension TransferItem {
    /// The local file or folder of the item, or the first local file of its form.
    fileprivate var firstSource: FilePath? {
        guard case .form(let parts) = content else { return source }
        return parts.lazy.compactMap { if case .path(let path) = $0.content { path } else { nil } }.first
    }
}

extension SessionDraft {
    fileprivate init(_ request: SessionRequest, _ drafting: inout ItemDrafting) throws(QueueError) {
        guard let first = request.items.first else {
            throw QueueError(.invalidRequest, "A session for the account \"\(request.account)\" has no items. Add at least one.")
        }
        try request.options.validate()
        try SessionContext.validate(request.context)
        try SessionRequest.validate(notBefore: request.notBefore)
        guard (request.direction == .download) == (request.folder != nil) else {
            throw QueueError(
                .invalidRequest, "A download needs a local folder, and an upload must not have one.")
        }
        guard !request.deduplicatesCompleted || request.deduplicationKey != nil else {
            throw QueueError(.invalidRequest, "A session with deduplicatesCompleted has no deduplicationKey. Set a key.")
        }
        guard request.options.expectedChecksum == nil || (request.direction == .download && request.items.count == 1 && first.isFile) else {
            throw QueueError(.invalidRequest, "An expected checksum is allowed only for a download of exactly one file.")
        }
        let folder = drafting.begin(downloadingTo: request.folder.map { DownloadFolder(path: $0, overwrite: request.options.overwrite) })
        let items = request.items.compactMap { drafting.draft(of: $0) }
        drafting.checkTotalSize(of: items)
        // If the session is a duplicate, its sources may have been removed, or its downloads may exist. The scheduler detects duplicates
        // later, so the draft only stores these problems.
        let canBeDuplicate = request.deduplicationKey != nil && request.items.allSatisfy(\.isReference)
        let refusal = canBeDuplicate ? drafting.removeFileProblems() : nil
        self.init(
            id: request.id, account: request.account,
            name: request.name ?? Self.name(first, of: request.items.count, account: request.account),
            direction: request.direction, folder: folder, tags: request.tags, context: request.context, options: request.options,
            notBefore: request.notBefore, dependency: request.dependency, deduplicationKey: request.deduplicationKey,
            deduplicatesCompleted: request.deduplicatesCompleted, items: items)
        self.refusal = refusal
    }

    /// The name of a session without a given name: the name of its first item, and the number of other items. If the first item is the endpoint's
    /// folder, the account's name replaces the item's name.
    private static func name(_ first: TransferItem, of count: Int, account: String) -> String {
        let name = first.destination?.isEndpointFolder == true ? account : first.shownName
        return count == 1 ? name : "\(name) and \(count - 1) more"
    }
}
