import Foundation
import Logging
import SystemPackage
import TransferCore

extension TransferQueue {
    /// The properties of a session that its account's transports must support.
    struct SessionRequirements: Equatable {
        var account: String
        var direction: TransferDirection
        var options: SessionOptions
    }

    /// Rejects requests that the endpoints of their account can't perform (``Swift/Sequence/check(by:)``), and requests whose remote names
    /// clash (``NameCheck``). Ignores requests with an unknown account.
    ///
    /// If a request has a deduplication key, this method does not throw the request's error, but stores the error in the request's draft. The
    /// scheduler throws the error later, and only if the queue has no session with the key.
    nonisolated func check(_ requests: [SessionRequest], _ drafts: inout [SessionDraft]) async throws(QueueError) {
        let accounts = await definitions(of: Set(requests.map(\.account)))
        warn(ofMissingTransports: accounts.values.sorted { $0.name < $1.name })
        var last: SessionRequirements?
        for (index, request) in requests.enumerated() {
            let requirements = SessionRequirements(account: request.account, direction: request.direction, options: request.options)
            guard let account = accounts[requirements.account] else { continue }
            do throws(QueueError) {
                // Most requests of a call have the same requirements, which need only one check.
                if requirements != last { try check(requirements, at: account) }
                last = requirements
                try check(request.items, of: requirements, at: account)
            } catch {
                guard request.deduplicationKey != nil else { throw error }
                drafts[index].refusal = error
            }
        }
        guard transports.values.contains(where: { $0 is any FileNaming }) else { return }
        let (names, checked) = (NameCheck(transports: transports, folders: store.sources), drafts)
        drafts = try await BlockingIO.run(for: requests.lazy.compactMap(\.localFolder).first.map { .folder($0) }) { () throws(QueueError) in
            var checked = checked
            try names.check(&checked, accounts)
            return checked
        }
    }

    /// Calls a body that creates drafts of new sessions or items. Logs a warning if the body takes longer than ``LocalReads/limit``, because
    /// the disk of the local files may hang.
    ///
    /// - Parameter folder: The folder of the local files, for the warning; nil if there are no local files.
    nonisolated func draft<Drafts: Sendable>(
        filesIn folder: FilePath?, _ body: () async throws -> Drafts
    ) async throws -> Drafts {
        let warning = folder.map { folder in
            Task { [clock = configuration.clock, logger = configuration.logger] in
                try await clock.sleep(LocalReads.limit)
                let name = folder.isEmpty ? "." : folder.string
                logger.warning(
                    "Checking new files in \(name) has taken more than \(LocalReads.limit). Its disk or network share may not be responding."
                )
            }
        }
        defer { warning?.cancel() }
        return try await body()
    }

    /// Rejects new items whose remote names clash with each other or with existing items of the session; see ``NameCheck``.
    ///
    /// - Parameter replaced: Existing items that the new items replace; nil if they replace all items.
    nonisolated func checkNames(
        of items: [ItemDraft], addedTo session: SessionRecord, replacing replaced: ReplaceableItems? = ReplaceableItems()
    ) async throws {
        guard session.status.direction == .upload, let key = await scheduler.sessionIndex.key(of: session.status.id),
            let account = await definitions(of: [session.status.account])[session.status.account]
        else { return }
        let names = NameCheck(transports: transports, folders: store.sources)
        guard let refusal = names.refusal(of: session.options, at: account) else { return }
        var taken: [NamedItem] = []
        if let replaced {
            let given = Set(items.map { NameKey($0.destination) })
            taken = try await clientReads.run { try await store.items(of: key, near: given, excluding: replaced) }
        }
        let source = items.lazy.compactMap { [folders = store.sources] in folders.source(of: $0.kind, [UInt8]($0.source)) }.first
        let folder = source?.removingLastComponent()
        try await BlockingIO.run(for: folder.map { .folder($0) }) { [taken] () throws(QueueError) in
            try names.check(items, after: taken, refusal)
        }
    }

    /// Checks that the session's account can transfer the forms, and the items with an upload URL or a creation URL. Ignores all other items.
    nonisolated func check(_ items: [TransferItem], of requirements: SessionRequirements) async throws(QueueError) {
        guard items.contains(where: { $0.hasURL || $0.isForm }),
            let account = await definitions(of: [requirements.account])[requirements.account]
        else {
            return
        }
        try check(items, of: requirements, at: account)
    }

    /// Rejects an update that would make one of the given sessions invalid, unless that session has failed or was cancelled. Ignores completed
    /// sessions, because an update does not change them.
    ///
    /// - Parameter always: Whether to check the sessions even if the update does not change their requirements.
    /// - Returns: The failed and cancelled sessions that the update would make invalid. An update of a group does not change them.
    @discardableResult
    nonisolated func check(_ update: SessionUpdate, of sessions: [SessionID], always: Bool = false) async throws -> Set<SessionID> {
        var refused: Set<SessionID> = []
        for start in stride(from: 0, to: sessions.count, by: Self.checkPageSize) {
            for record in try await records(of: sessions[start..<min(start + Self.checkPageSize, sessions.count)]) {
                do {
                    try await check(update, of: record, always: always)
                } catch let error as QueueError where error.code == .invalidRequest && [.failed, .cancelled].contains(record.status.state) {
                    refused.insert(record.status.id)
                }
            }
        }
        return refused
    }

    /// Rejects an update that would make a session invalid.
    ///
    /// - Parameter always: Whether to check the session even if the update does not change its requirements.
    nonisolated func check(_ update: SessionUpdate, of record: SessionRecord, always: Bool = false) async throws {
        let status = record.status
        let name = update.account ?? status.account
        guard status.state != .completed, let account = await definitions(of: [name])[name] else { return }
        var requirements = SessionRequirements(account: name, direction: status.direction, options: record.options)
        update.apply(to: &requirements.options)
        guard always || requirements.account != status.account || requirements.options != record.options else { return }
        guard update.expectedChecksum?.value == nil || status.direction == .download && status.statistics.files == 1 else {
            throw QueueError(.invalidRequest, "An expected checksum is allowed only for a download of exactly one file.")
        }
        if name != status.account { warn(ofMissingTransports: [account]) }
        try check(requirements, at: account)
        let itemURLs = try await clientReads.run { try await store.itemURLs(of: record.key) }
        for urls in itemURLs { try check(requirements, urls.upload, urls.creation, at: account) }
        guard status.direction == .upload else { return }
        let hasForms = try await clientReads.run { try await store.hasForms(of: record.key) }
        if hasForms { try checkForms(requirements, at: account) }
        let names = NameCheck(transports: transports, folders: store.sources)
        guard let refusal = names.refusal(of: requirements.options, at: account) else { return }
        let clashing = try await clientReads.run { try await store.itemsWithClashingNames(of: record.key) }
        let folder = clashing.lazy.compactMap(\.source).first?.removingLastComponent()
        try await BlockingIO.run(for: folder.map { .folder($0) }) { () throws(QueueError) in
            try names.check([], after: clashing, refusal)
        }
    }

    private static let checkPageSize = 1_000

    private func records(of sessions: ArraySlice<SessionID>) async throws -> [SessionRecord] {
        let keys = sessions.compactMap { scheduler.sessionIndex.key(of: $0) }
        return try await clientReads.run { try await store.sessions(keys) }
    }

    private nonisolated func check(_ items: [TransferItem], of requirements: SessionRequirements, at account: Account) throws(QueueError) {
        for item in items {
            if item.hasURL { try check(requirements, item.uploadCapability, item.creationCapability, at: account) }
        }
        if items.contains(where: \.isForm) { try checkForms(requirements, at: account) }
    }

    private nonisolated func checkForms(_ requirements: SessionRequirements, at account: Account) throws(QueueError) {
        let options = AttemptOptions(requirements.options)
        do throws(TransferError) {
            try account.endpoints.check { endpoint throws(TransferError) in
                try endpoint.checkForms(options, with: transports[endpoint.transport])
            }
        } catch {
            throw QueueError(.invalidRequest, error.message)
        }
    }

    private nonisolated func check(
        _ requirements: SessionRequirements, _ upload: Capability? = nil, _ creation: Capability? = nil, at account: Account
    ) throws(QueueError) {
        let options = AttemptOptions(requirements.options, uploadURL: upload, creationURL: creation)
        do throws(TransferError) {
            try account.endpoints.check { endpoint throws(TransferError) in
                try (transports[endpoint.transport] as? any SessionValidating)?.validate(options, for: requirements.direction, at: endpoint)
            }
        } catch {
            throw QueueError(.invalidRequest, error.message)
        }
    }

    func definitions(of names: Set<String>) -> [String: Account] {
        names.reduce(into: [:]) { $0[$1] = scheduler.accountKeys[$1].flatMap { scheduler.accounts[$0]?.account } }
    }
}

extension TransferItem {
    fileprivate var hasURL: Bool { uploadCapability != nil || creationCapability != nil }
}
