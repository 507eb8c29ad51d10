import Locking
import TransferCore

/// Removes the part files of downloads on this machine.
extension DiscardOutbox {
    /// Performs the due removals of part files, until no removal is due, the task is cancelled, or the store fails.
    func removeParts() async {
        try? await store.correctFarDiscards()
        while !Task.isCancelled, let found = try? await store.dueDiscards(at: clock.date(), limit: Self.page, isLocalOnly: true),
            !found.due.isEmpty, await discardParts(found.due)
        {}
    }

    /// Removes part files on this machine, and stores the results concurrently, so that the results share a transaction. There may be many
    /// results, because each completed download leaves one entry in the outbox. All removals in one download folder share a thread, so a
    /// folder that hangs blocks only one thread.
    ///
    /// - Returns: Whether all results were stored.
    func discardParts(_ items: [PendingDiscard]) async -> Bool {
        let roots = Dictionary(grouping: items.filter(\.isPart)) { parts.root(of: $0.checkpoint) }
        return await withTaskGroup(of: Bool.self) { group in
            for items in roots.values where !Task.isCancelled {
                group.addTask { await self.discardParts(ofOneDownloadFolder: items) }
            }
            return await group.reduce(true) { $0 && $1 }
        }
    }

    private func discardParts(ofOneDownloadFolder items: [PendingDiscard]) async -> Bool {
        let failures = Locked<[Int: TransferError]>([:])
        let result = await Self.result {
            let message = "This machine took longer than \(Self.timeout) to remove part files of downloads."
            try await TimeLimit.run(for: Self.timeout, clock, message) { [parts] in
                let found = await parts.remove(items.map(\.checkpoint))
                failures.withLock { $0 = found }
            }
        }
        return await withTaskGroup(of: Bool.self) { group in
            for (index, item) in items.enumerated() {
                let failure = failures.withLock { $0[index] }
                group.addTask { await self.storeResult(failure.map { .failure($0) } ?? result, of: item) }
            }
            return await group.reduce(true) { $0 && $1 }
        }
    }
}

extension PendingDiscard {
    var isPart: Bool { endpoint.transport == TransportID.localParts }
}
