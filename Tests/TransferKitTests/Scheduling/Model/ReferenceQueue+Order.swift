import Foundation
import TransferKit

extension ReferenceQueue {
    // MARK: Moving

    /// The moved ones become neighbours, in list order.
    mutating func move(_ ids: [SessionID], to destination: MoveDestination) throws(QueueError) -> Answer {
        let before = sessions.map(\.id)
        let moved = sessions.filter { ids.contains($0.id) }
        var rest = sessions.filter { !ids.contains($0.id) }
        let place: Int
        switch destination {
        case .index(let index): place = index
        case .front: place = 0
        case .end: place = rest.count
        case .before(let other), .after(let other):
            _ = try requireIndex(of: other)
            guard let index = rest.firstIndex(where: { $0.id == other }) else { return Answer() }
            if case .before = destination { place = index } else { place = index + 1 }
        }
        guard (0...rest.count).contains(place) else { throw QueueError(.indexOutOfRange, "") }
        rest.insert(contentsOf: moved, at: place)
        sessions = rest
        try requireOrderOfDependencies()
        guard sessions.map(\.id) != before else { return Answer() }
        orderRevision += 1
        for index in sessions.indices where index > place { loseInterruption(index) }
        return Answer(sessions: moved.map(\.id))
    }

    // MARK: Removing

    mutating func remove(_ ids: [SessionID], isForced: Bool) throws(QueueError) -> Answer {
        if !isForced {
            for session in sessions where !ids.contains(session.id) {
                if let other = session.dependency?.session, ids.contains(other) { throw QueueError(.hasDependents, "") }
            }
        }
        removeNow(ids)
        return Answer(sessions: ids)
    }

    /// A run that has not let go yet uses its slot until it does.
    mutating func removeNow(_ ids: [SessionID]) {
        guard !ids.isEmpty else { return }
        for id in ids {
            guard let index = index(of: id) else { continue }
            tellToEnd(index)
            if let run = sessions[index].run { leftovers.append(Leftover(id: id, account: sessions[index].account, run: run)) }
            sessions.remove(at: index)
            letGo(ownedBy: id)
        }
        for index in sessions.indices {
            if let other = sessions[index].dependency?.session, ids.contains(other) { sessions[index].dependency = nil }
        }
        orderRevision += 1
    }

    /// Completed sessions that are too many or too old go, the oldest first.
    mutating func applyRetention() {
        let completed = sessions.filter { $0.state == .completed }.sorted { ($0.endedAt ?? .distantPast) < ($1.endedAt ?? .distantPast) }
        switch settings.retention {
        case .keepAll: break
        case .count(let count): removeNow(completed.dropLast(count).map(\.id))
        case .age(let age):
            let old = completed.filter { now.date.timeIntervalSince($0.endedAt ?? .distantPast) >= Double(age.components.seconds) }
            removeNow(old.map(\.id))
        }
    }
}
