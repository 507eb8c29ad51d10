import TransferKit

/// The incomplete files that runs left at servers, and what the store knows of each of them.
struct RemoteLedger {
    private struct Part: Hashable {
        var session: SessionKey
        var position: Int64
        /// The life of the file, from 1.
        var life: Int
    }

    /// Those that a session continues.
    private var checkpoints: Set<Part> = []
    /// Those of removed sessions, as long as a run may complete them.
    private var held: Set<Part> = []
    /// Those that may be removed from their servers.
    private var due: Set<Part> = []
    private var lives: [SessionKey: [Int64: Int]] = [:]
    private var quarantined: Set<SessionKey> = []

    private func part(_ session: SessionKey, _ position: Int64) -> Part {
        Part(session: session, position: position, life: lives[session]?[position] ?? 1)
    }

    mutating func apply(_ writes: [StoreWrite]) {
        for write in writes {
            switch write {
            case .insertSessions(let sessions):
                // After a restart, keys are reused; remote names do not depend on them.
                sessions.forEach { row, _ in
                    due = due.filter { $0.session != row.entry.key }
                    quarantined.remove(row.entry.key)
                }
            case .file(let key, let position, .checkpoint): checkpoints.insert(part(key, position))
            case .file(let key, let position, .completed): checkpoints.remove(part(key, position))
            case .file(let key, let position, .restarted): discard(checkpoints.filter { $0.session == key && $0.position == position })
            case .resetSession(let key, isWhole: true), .discardPartial(let key): discard(checkpoints.filter { $0.session == key })
            case .deleteSession(let key, let isRunning):
                let parts = checkpoints.filter { $0.session == key }
                checkpoints.subtract(parts)
                if isRunning { held.formUnion(parts) } else { due.formUnion(parts) }
            case .quarantine(let key, _):
                checkpoints = checkpoints.filter { $0.session != key }
                quarantined.insert(key)
            case .holdDiscard(let key, let position, _, _): if !quarantined.contains(key) { held.insert(part(key, position)) }
            case .dropDiscard(let key, let position, _): held.remove(part(key, position))
            case .releaseDiscards(let key): release(held.filter { $0.session == key })
            default: break
            }
        }
    }

    /// A later attempt begins another life, whose remote name a late removal can't affect.
    private mutating func discard(_ parts: Set<Part>) {
        checkpoints.subtract(parts)
        due.formUnion(parts)
        for part in parts { lives[part.session, default: [:]][part.position] = part.life + 1 }
    }

    private mutating func release(_ parts: Set<Part>) {
        held.subtract(parts)
        due.formUnion(parts)
    }

    /// What opening a store does with the leftovers of a killed process.
    mutating func restart(_ scheduler: Scheduler) {
        release(held)
        for session in scheduler.sessions where Self.leavesNothing(session, scheduler) {
            discard(checkpoints.filter { $0.session == session.key })
        }
    }

    private static func leavesNothing(_ session: Scheduler.View, _ scheduler: Scheduler) -> Bool {
        session.target == .cancelled && session.run == nil
            && scheduler.sessionIndex[session.key]?.conditions.contains(.keepsPartial) == false
    }

    /// - Parameter leftovers: Removed sessions whose runs have not ended.
    func broken(_ scheduler: Scheduler, leftovers: Set<SessionKey>) -> String? {
        let sessions = Dictionary(uniqueKeysWithValues: scheduler.sessions.map { ($0.key, $0) })
        for part in checkpoints {
            guard let session = sessions[part.session] else { return "a session is gone, and its remote content is unrecorded: \(part)" }
            if Self.leavesNothing(session, scheduler) { return "what a cancelled session left is not removed: \(part)" }
        }
        for part in held where !leftovers.contains(part.session) {
            return "no run is left that could complete what is not removed: \(part)"
        }
        for part in due where part == self.part(part.session, part.position) {
            let isRunning = sessions[part.session]?.run != nil || leftovers.contains(part.session)
            if isRunning { return "a run may complete what is about to be removed: \(part)" }
        }
        return nil
    }
}
