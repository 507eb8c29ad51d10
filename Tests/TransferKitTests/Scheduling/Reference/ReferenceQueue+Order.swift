import Foundation
import TransferKit

extension ReferenceQueue {
    // MARK: Moving

    /// Moves sessions. The moved sessions become neighbours, and keep their order.
    mutating func move(_ ids: [SessionID], to destination: MoveDestination) throws(QueueError) -> InputResult {
        guard !ids.isEmpty else { return InputResult() }
        let ordered = sessions.prefix(orderedCount).map(\.id)
        let moved = ordered.filter { ids.contains($0) }
        let others = ordered.filter { !ids.contains($0) }
        let position: Int
        switch destination {
        case .index(let index, let expecting):
            guard expecting == nil || expecting == orderRevision else { throw QueueError(.staleOrder, "") }
            position = index
        case .front: position = 0
        case .end: position = others.count
        case .before(let other), .after(let other):
            let index = try requireIndex(of: other)
            try requirePosition(of: other)
            position = sessions[..<index].count { !ids.contains($0.id) } + (ids.contains(other) || destination == .before(other) ? 0 : 1)
        }
        guard (0...others.count).contains(position) else { throw QueueError(.indexOutOfRange, "") }
        var previous = position == 0 ? nil : others[position - 1]
        var result = InputResult()
        for id in moved {
            if try move(id, after: previous) { result.sessions.append(id) }
            previous = id
        }
        try requireOrderOfDependencies()
        return result
    }

    /// Moves a session after `previous`, or to the front. Returns whether the order changed.
    private mutating func move(_ id: SessionID, after previous: SessionID?) throws(QueueError) -> Bool {
        let before = sessions.map(\.id)
        let session = sessions.remove(at: try requireIndex(of: id))
        var position = 0
        if let previous { position = try requireIndex(of: previous) + 1 }
        sessions.insert(session, at: position)
        guard sessions.map(\.id) != before else { return false }
        orderRevision += 1
        for index in sessions.indices where index > position { clearInterruptedPriority(index) }
        return true
    }

    // MARK: Removing

    mutating func remove(_ ids: [SessionID], isForced: Bool) throws(QueueError) -> InputResult {
        if !isForced {
            for session in sessions where !ids.contains(session.id) {
                if let other = session.dependency?.session, ids.contains(other) { throw QueueError(.hasDependents, "") }
            }
        }
        removeNow(ids)
        return InputResult(sessions: ids)
    }

    /// Removes sessions. A run that has not ended yet keeps its slot until the end of the run.
    mutating func removeNow(_ ids: [SessionID]) {
        guard !ids.isEmpty else { return }
        let countBefore = orderedCount
        for id in ids {
            guard let index = index(of: id) else { continue }
            requestStop(index)
            if let run = sessions[index].run { leftovers.append(Leftover(id: id, account: sessions[index].account, run: run)) }
            sessions.remove(at: index)
            restoreDisplaced(by: id)
        }
        for index in sessions.indices {
            if let other = sessions[index].dependency?.session, ids.contains(other) { sessions[index].dependency = nil }
        }
        if orderedCount != countBefore { orderRevision += 1 }
    }

    /// Removes the completed sessions that exceed the permitted number or age, oldest first.
    mutating func applyRetention() {
        let completed = sessions.filter { $0.state == .completed }.sorted { isOlder($0, $1) }
        switch settings.retention {
        case .keepAll: break
        case .count(let count): removeNow(completed.dropLast(count).map(\.id))
        case .age(let age):
            let old = completed.filter { steadyDate.timeIntervalSince($0.keptSince ?? .distantPast) >= age.inSeconds }
            removeNow(old.map(\.id))
        }
    }

    private func isOlder(_ one: ReferenceSession, _ other: ReferenceSession) -> Bool {
        let (end, otherEnd) = (one.keptSince ?? .distantPast, other.keptSince ?? .distantPast)
        return end == otherEnd ? one.number < other.number : end < otherEnd
    }
}
