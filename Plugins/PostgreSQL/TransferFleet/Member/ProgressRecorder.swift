import TransferKit

/// Stores the progress of a member's sessions in the fleet, before the member's queue stores the progress in its storage folder. The reports that
/// arrive during a transaction are written together in the next one.
actor ProgressRecorder {
    private struct Report {
        var lease: LeaseReference
        var progress: FileProgress
        var continuation: CheckedContinuation<Void, any Error>
    }

    private static let retryDelay = Duration.milliseconds(500)

    /// A separate connection, so that reports do not wait for a transaction that waits for the fleet's lock.
    private let store: FleetStore
    private let member: String
    /// The numbers of the leases (``LeaseReference/epoch``) that are valid according to this member's clock.
    private var epochs: [SessionID: Int64] = [:]
    private var pending: [Report] = []
    private var isWriting = false

    init(_ store: FleetStore, member: String) {
        self.store = store
        self.member = member
    }

    /// Accepts progress of a session under a new lease.
    func begin(_ lease: LeaseReference) {
        epochs[lease.id] = lease.epoch
    }

    /// Rejects further progress of a session, because its lease has ended or ends soon.
    func end(_ id: SessionID) {
        epochs[id] = nil
        let rejected = pending.filter { $0.lease.id == id }
        pending.removeAll { $0.lease.id == id }
        for report in rejected { report.continuation.resume(throwing: QueueError.leaseLost(id)) }
    }

    /// Stores progress in the fleet, and returns when the progress is durable.
    ///
    /// - Throws: ``QueueError`` if the lease of the session has ended, so that the session must stop immediately; or if the database rejects the
    ///   progress.
    func record(_ id: SessionID, _ progress: FileProgress) async throws {
        guard let epoch = epochs[id] else { throw QueueError.leaseLost(id) }
        try await withCheckedThrowingContinuation { continuation in
            pending.append(Report(lease: LeaseReference(id: id, epoch: epoch), progress: progress, continuation: continuation))
            guard !isWriting else { return }
            isWriting = true
            Task { await write() }
        }
    }

    private func write() async {
        while !pending.isEmpty {
            let batch = pending
            pending = []
            do {
                try await write(batch)
            } catch  where !Self.isOutage(error) && batch.count > 1 {
                // A single invalid report makes the whole batch fail, so write each report in a separate transaction.
                var rest = batch[...]
                while let report = rest.first, await writeAlone(report) { rest.removeFirst() }
                if !rest.isEmpty { await wait(with: rest) }
            } catch  where !Self.isOutage(error) {
                for report in batch { report.continuation.resume(throwing: error) }
            } catch {
                await wait(with: batch[...])
            }
        }
        isWriting = false
    }

    private func write(_ batch: [Report]) async throws {
        let valid = try await store.record(batch.map { ($0.lease, $0.progress) }, of: member)
        for report in batch {
            if valid.contains(report.lease.id) {
                report.continuation.resume()
            } else {
                report.continuation.resume(throwing: QueueError.leaseLost(report.lease.id))
            }
        }
    }

    /// Writes one report, or resumes its caller with an error.
    ///
    /// - Returns: Whether the report was stored or rejected. False if the database can't be reached.
    private func writeAlone(_ report: Report) async -> Bool {
        do {
            try await write([report])
        } catch  where !Self.isOutage(error) {
            report.continuation.resume(throwing: error)
        } catch {
            return false
        }
        return true
    }

    /// Requeues reports, because the database can't be reached. The transfers wait for the database, which may be available again before the leases
    /// end. The reports of an ended lease fail, because `end` has removed the lease's epoch.
    private func wait(with reports: ArraySlice<Report>) async {
        for report in reports where epochs[report.lease.id] != report.lease.epoch {
            report.continuation.resume(throwing: QueueError.leaseLost(report.lease.id))
        }
        pending.insert(contentsOf: reports.filter { epochs[$0.lease.id] == $0.lease.epoch }, at: 0)
        if !pending.isEmpty { try? await Task.sleep(for: Self.retryDelay) }
    }

    /// Whether a retry can succeed, because the reports did not cause the error.
    private static func isOutage(_ error: any Error) -> Bool {
        guard let error = error as? QueueError else { return false }
        return [.storageUnavailable, .storageTooNew].contains(error.code)
    }

    func close() async {
        await store.connection.close()
    }
}

extension QueueError.Code {
    /// A member's lease of a session has ended, so the member must stop the session.
    fileprivate static let leaseEnded = Self(rawValue: "leaseEnded")
}

extension QueueError {
    static func leaseLost(_ id: SessionID) -> QueueError {
        QueueError(.leaseEnded, "This member's lease of the session \(id) has ended.")
    }
}
