import TransferKit

/// The partial uploads on servers: those that the queue may resume, must keep for a run, or may remove.
struct RemoteLedger {
    private struct PartialUpload: Hashable {
        var session: SessionKey
        var position: Int64
        /// The generation of the file, starting at 1.
        var generation: Int
    }

    /// The partial uploads that a session may resume.
    private var checkpoints: Set<PartialUpload> = []
    /// The partial uploads of removed sessions that a run may still complete.
    private var held: Set<PartialUpload> = []
    /// The partial uploads that the queue may remove from their servers.
    private var due: Set<PartialUpload> = []
    private var generations: [SessionKey: [Int64: Int]] = [:]
    private var quarantined: Set<SessionKey> = []

    private func partialUpload(_ session: SessionKey, _ position: Int64) -> PartialUpload {
        PartialUpload(session: session, position: position, generation: generations[session]?[position] ?? 1)
    }

    mutating func apply(_ writes: [StoreWrite]) {
        for write in writes {
            switch write {
            case .insertSessions(let sessions):
                // After a restart, a new session may get the key of a removed one. The new session's uploads have other remote names, so
                // the ledger drops the uploads of the removed session.
                sessions.forEach { row, _ in
                    due = due.filter { $0.session != row.entry.key }
                    quarantined.remove(row.entry.key)
                }
            case .file(let key, let position, .checkpoint): checkpoints.insert(partialUpload(key, position))
            case .file(let key, let position, .completed): checkpoints.remove(partialUpload(key, position))
            case .file(let key, let position, .restarted): makeDue(checkpoints.filter { $0.session == key && $0.position == position })
            case .resetSession(let key, isWhole: true), .discardPartial(let key), .changeAccount(let key, _):
                makeDue(checkpoints.filter { $0.session == key })
            case .deleteSession(let key, let isRunning):
                let partials = checkpoints.filter { $0.session == key }
                checkpoints.subtract(partials)
                if isRunning { held.formUnion(partials) } else { due.formUnion(partials) }
            case .dropCheckpoints(let key): checkpoints = checkpoints.filter { $0.session != key }
            case .quarantine(let key, _):
                checkpoints = checkpoints.filter { $0.session != key }
                quarantined.insert(key)
            case .holdDiscard(let key, let position, _, _): if !quarantined.contains(key) { held.insert(partialUpload(key, position)) }
            case .dropDiscard(let key, let position, _): held.remove(partialUpload(key, position))
            case .releaseDiscards(let key): release(held.filter { $0.session == key })
            default: break
            }
        }
    }

    /// Makes partial uploads due for removal. Later attempts belong to another generation with a different remote name, so a late removal
    /// can't affect the new upload.
    private mutating func makeDue(_ partials: Set<PartialUpload>) {
        checkpoints.subtract(partials)
        due.formUnion(partials)
        for partial in partials { generations[partial.session, default: [:]][partial.position] = partial.generation + 1 }
    }

    private mutating func release(_ partials: Set<PartialUpload>) {
        held.subtract(partials)
        due.formUnion(partials)
    }

    /// Updates the ledger as if another process opened the storage folder after a kill.
    mutating func restart(_ scheduler: Scheduler) {
        release(held)
        for session in scheduler.sessions where Self.removesPartialUploads(session, scheduler) {
            makeDue(checkpoints.filter { $0.session == session.key })
        }
    }

    private static func removesPartialUploads(_ session: Scheduler.View, _ scheduler: Scheduler) -> Bool {
        session.target == .cancelled && session.run == nil
            && scheduler.sessionIndex[session.key]?.conditions.contains(.keepsPartial) == false
    }

    /// Returns the first inconsistency between the ledger and the scheduler; nil if they agree.
    ///
    /// - Parameter endingSessions: Removed sessions whose runs have not ended.
    func firstInconsistency(with scheduler: Scheduler, endingSessions: Set<SessionKey>) -> String? {
        let sessions = Dictionary(uniqueKeysWithValues: scheduler.sessions.map { ($0.key, $0) })
        for partial in checkpoints {
            guard let session = sessions[partial.session] else { return "a removed session's upload is not due for removal: \(partial)" }
            if Self.removesPartialUploads(session, scheduler) { return "a cancelled session's upload is not due for removal: \(partial)" }
        }
        for partial in held where !endingSessions.contains(partial.session) {
            return "a partial upload is held although no run can complete it: \(partial)"
        }
        for partial in due where partial == self.partialUpload(partial.session, partial.position) {
            let isRunning = sessions[partial.session]?.run != nil || endingSessions.contains(partial.session)
            if isRunning { return "a run may complete a partial upload that is due for removal: \(partial)" }
        }
        return nil
    }
}
