import TransferCore

extension TransferQueue {
    /// Adds items at the end of a session. A running session transfers them before it completes.
    ///
    /// The call rejects remote names that clash with each other or with the names of existing items of the session, by the rules of
    /// ``enqueue(_:at:held:)-([SessionRequest],_,_)``.
    ///
    /// - Throws: ``QueueError``, including the codes `noSuchSession`, `invalidTransition` if the session ended, `invalidRequest`,
    ///   `unreadableItems` and `fileExists`; `CancellationError` if the task is cancelled while a file is copied. After an error, nothing is added.
    public nonisolated func addItems(_ items: [TransferItem], to session: SessionReference) async throws {
        let target = try await target(of: session)
        guard !items.isEmpty else { throw QueueError(.invalidRequest, "There are no items to add. Add at least one.") }
        try await add(items, to: target, replacing: ReplaceableItems()) { .addItems(.id(target.status.id), $0) }
    }

    /// - Parameter replaced: The existing items that the new items replace; nil for all items.
    private nonisolated func add(
        _ items: [TransferItem], to target: SessionRecord, replacing replaced: ReplaceableItems?, by command: ([ItemDraft]) -> Command
    ) async throws {
        let (id, options) = (target.status.id, target.options)
        let folder = target.folder.map { DownloadFolder(path: $0, overwrite: options.overwrite) }
        try await check(
            items, of: SessionRequirements(account: target.status.account, direction: target.status.direction, options: options))
        let drafts = try await draft(filesIn: folder?.path ?? items.localFolder) {
            items.isEmpty ? [] : try await store.drafts(of: items, downloadingTo: folder)
        }
        do {
            try await checkEndpointFolder(drafts, addedTo: target, replacing: replaced)
            try await checkNames(of: drafts, addedTo: target, replacing: replaced)
            try register(items, drafts, of: id)
            try await mailbox.send(.command(command(drafts)))
        } catch {
            await discard(drafts)
            throw error
        }
    }

    /// Rejects new items if the session would then contain the endpoint's folder together with other items.
    private nonisolated func checkEndpointFolder(
        _ drafts: [ItemDraft], addedTo target: SessionRecord, replacing replaced: ReplaceableItems?
    ) async throws {
        guard target.status.direction == .download, !drafts.isEmpty, let replaced, target.status.statistics.files > replaced.count else {
            return
        }
        var isConflict = drafts.contains { $0.kind == .remoteFolder && $0.source.isEmpty }
        if !isConflict { isConflict = try await clientReads.run { try await store.hasEndpointFolder(target.key) } }
        if isConflict { throw QueueError(.invalidRequest, DownloadDrafting.endpointFolderWithOtherItems.message) }
    }

    nonisolated func register(_ items: [TransferItem], _ drafts: [ItemDraft], of session: SessionID) throws(QueueError) {
        try streams.add(items, drafts, of: session, in: store.spool, clock: configuration.clock)
    }

    /// Releases the resources of drafts that were not stored: the app's streams, and files in the storage folder.
    nonisolated func discard(_ drafts: [ItemDraft]) async {
        streams.removeUnstored(drafts)
        await store.discardBlobs(of: drafts)
    }

    func target(of session: SessionReference) async throws -> SessionRecord {
        await waitForEarlierInputs()
        guard !mailbox.isClosed else { throw QueueError(.shutDown, "The queue is shut down.") }
        let key = try scheduler.resolve(session)
        guard let record = try await clientReads.run({ try await store.sessions([key]) }).first else {
            throw QueueError(.noSuchSession, "The session no longer exists.")
        }
        return record
    }

    /// Replaces or removes items that have not begun; see ``ControllableQueue/replaceItems(_:with:in:)``.
    public nonisolated func replaceItems(
        _ selection: ItemSelection, with items: [TransferItem], in session: SessionReference
    ) async throws {
        let target = try await target(of: session)
        let replaced = try await checkedItems(selection, of: target, replacedBy: items)
        try await add(items, to: target, replacing: selection == .all ? nil : replaced) {
            .replaceItems(selection, replaced, with: $0, in: .id(target.status.id))
        }
    }

    /// Checks that the selected items can be replaced, and returns the database rows of these items.
    private nonisolated func checkedItems(
        _ selection: ItemSelection, of target: SessionRecord, replacedBy items: [TransferItem]
    ) async throws -> ReplaceableItems {
        let id = target.status.id
        if case .at(let positions) = selection {
            guard positions.count <= Self.groupSize, positions.allSatisfy({ $0 >= 0 }) else {
                throw QueueError(.invalidRequest, "Replace at most \(Self.groupSize) items in one call. Positions start at 0.")
            }
        }
        if target.options.expectedChecksum != nil {
            guard selection == .all, items.count == 1, items.allSatisfy(\.isFile) else {
                throw QueueError(.invalidRequest, "An expected checksum is allowed only for a download of exactly one file.")
            }
        }
        guard !target.status.state.isEnded else {
            throw QueueError(.invalidTransition, "The session \(id) is \(target.status.state.rawValue), so its items can't be changed.")
        }
        guard let replaced = try await clientReads.run({ try await store.replaceableItems(selection, of: target.key) }) else {
            throw QueueError(
                .invalidTransition,
                "Cannot replace items of the session \(id). An item has begun, does not exist or is a stream, or the session has more than \(Self.groupSize) files."
            )
        }
        guard !items.isEmpty || selection != .all && target.status.statistics.files > replaced.count else {
            throw QueueError(.invalidRequest, "The session \(id) would have no items. Remove the session instead.")
        }
        return replaced
    }
}
