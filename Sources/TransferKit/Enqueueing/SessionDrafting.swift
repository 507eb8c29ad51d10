import Foundation
import SystemPackage
import TransferCore

extension QueueStore {
    /// Turns requests into drafts: checks the local files and settles names. What was handed over in memory is on disk when this returns; for
    /// drafts that are not stored after all, it is for the caller to call ``discardBlobs(of:)``.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest`, `unreadableItems` or `storageUnavailable`; nothing is left on disk then.
    func drafts(of requests: [SessionRequest]) async throws(QueueError) -> [SessionDraft] {
        try await BlockingIO.run { [sources, spool] () throws(QueueError) in
            var drafting = ItemDrafting(sources)
            var drafts: [SessionDraft] = []
            drafts.reserveCapacity(requests.count)
            for request in requests { drafts.append(try SessionDraft(request, &drafting)) }
            try drafting.finish()
            var names = try spool.write(requests.flatMap { $0.items.compactMap(\.data) })[...]
            if !names.isEmpty {
                for index in drafts.indices { names = drafts[index].items.nameBlobs(names) }
            }
            return drafts
        }
    }
}

extension SessionDraft {
    fileprivate init(_ request: SessionRequest, _ drafting: inout ItemDrafting) throws(QueueError) {
        guard let first = request.items.first else {
            throw QueueError(.invalidRequest, "A session for the account \"\(request.account)\" has no items; give it at least one.")
        }
        try request.options.validate()
        try SessionContext.validate(request.context)
        let calendar = Date.distantPast.timeIntervalSince1970...Date.distantFuture.timeIntervalSince1970
        if let notBefore = request.notBefore, !calendar.contains(notBefore.timeIntervalSince1970) {
            throw QueueError(.invalidRequest, "A session can't wait for a time that no calendar has; leave the start time out for none.")
        }
        guard (request.direction == .download) == (request.folder != nil) else {
            throw QueueError(
                .invalidRequest, "A session that downloads names the folder that it downloads to, and one that uploads does not.")
        }
        guard request.options.expectedChecksum == nil || (request.direction == .download && request.items.count == 1 && first.isFile) else {
            throw QueueError(.invalidRequest, "A session that names a checksum downloads one file, which has it.")
        }
        let folder = drafting.begin(downloadingTo: request.folder.map { DownloadFolder(path: $0, overwrite: request.options.overwrite) })
        let items = request.items.compactMap { drafting.draft(of: $0) }
        drafting.checkSum(of: items)
        self.init(
            id: request.id, account: request.account, name: request.name ?? Self.name(first, of: request.items.count),
            direction: request.direction, folder: folder, tags: request.tags, context: request.context, options: request.options,
            notBefore: request.notBefore, dependency: request.dependency, deduplicationKey: request.deduplicationKey,
            items: items)
    }

    private static func name(_ first: TransferItem, of count: Int) -> String {
        count == 1 ? first.shownName : "\(first.shownName) and \(count - 1) more"
    }
}
