import Locking
import TransferCore

/// Removes the part files of downloads on this machine.
extension DiscardOutbox {
    /// Performs the due removals of part files, until no removal is due, the task is cancelled, or the database fails.
    func removePartFiles() async {
        try? await store.correctImplausiblyLateDiscards()
        while !Task.isCancelled, let found = try? await store.dueDiscards(at: clock.date(), limit: Self.pageSize, isLocalOnly: true),
            !found.due.isEmpty, await discardPartFiles(found.due)
        {}
    }

    /// Removes part files on this machine. Stores the results concurrently, because inputs that wait in the mailbox at the same time usually share
    /// one transaction. There may be many results, because each completed download leaves one removal in the outbox. All removals in one download
    /// folder share a thread, so a folder that hangs blocks only one thread.
    ///
    /// - Returns: Whether all results were stored.
    func discardPartFiles(_ removals: [PendingDiscard]) async -> Bool {
        let roots = Dictionary(grouping: removals.filter(\.isPartFile)) { partFiles.root(of: $0.checkpoint) }
        return await withTaskGroup(of: Bool.self) { group in
            for removals in roots.values where !Task.isCancelled {
                group.addTask { await self.discardPartFiles(ofOneDownloadFolder: removals) }
            }
            return await group.reduce(true) { $0 && $1 }
        }
    }

    private func discardPartFiles(ofOneDownloadFolder removals: [PendingDiscard]) async -> Bool {
        let failures = Locked<[Int: TransferError]>([:])
        let result = await Self.result {
            let message = "This machine took longer than \(Self.timeout) to remove part files of downloads."
            try await TimeLimit.run(for: Self.timeout, clock, message) { [partFiles] in
                let found = await partFiles.remove(removals.map(\.checkpoint))
                failures.withLock { $0 = found }
            }
        }
        return await withTaskGroup(of: Bool.self) { group in
            for (index, removal) in removals.enumerated() {
                let failure = failures.withLock { $0[index] }
                group.addTask { await self.storeResult(failure.map { .failure($0) } ?? result, of: removal) }
            }
            return await group.reduce(true) { $0 && $1 }
        }
    }
}

extension PendingDiscard {
    var isPartFile: Bool { endpoint.transport == TransportID.localPartFiles }
}
