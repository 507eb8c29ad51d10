import TransferKit

/// An in-memory model of a fleet with one account, with which tests compare the database. Simple rather than fast.
struct FleetModel {
    struct Session: Equatable {
        var id: SessionID
        var state = SessionState.waiting
        var owner: String?
        /// The start priority: 0 for `run`, 1 for `runNext`, 2 for a displaced session that may resume, 3 for an interrupted session, and 4
        /// for all other sessions.
        var startPriority = 4
        /// Orders sessions with the start priority 0 or 1: if two have the same priority, the session with the higher mark starts first.
        var mark = 0
        var displacedBy: SessionID?
        var isRemoved = false
    }

    /// The sessions in order, including removed sessions that still have an owner.
    var sessions: [Session] = []
    /// The slots of the live members.
    var slots: [String: Int] = [:]
    var fleetLimit: Int?
    var accountLimit: Int?
    private var mark = 0

    var visible: [Session] { sessions.filter { !$0.isRemoved } }

    private func owned(_ member: String? = nil) -> Int { sessions.count { $0.owner != nil && (member == nil || $0.owner == member) } }

    private var hasLimitLeft: Bool { owned() < fleetLimit ?? .max && owned() < accountLimit ?? .max }

    private mutating func change(_ id: SessionID, _ body: (inout Session) -> Void) {
        guard let index = sessions.firstIndex(where: { $0.id == id }) else { return }
        body(&sessions[index])
    }

    subscript(id: SessionID) -> Session? { sessions.first { $0.id == id } }

    mutating func take(_ member: String) -> [SessionID] {
        var taken: [SessionID] = []
        while owned(member) < slots[member] ?? 0, hasLimitLeft {
            let eligible = sessions.enumerated().filter {
                $0.element.state == .waiting && $0.element.owner == nil && $0.element.displacedBy == nil
            }
            let next = eligible.min {
                ($0.element.startPriority, -$0.element.mark, $0.offset) < ($1.element.startPriority, -$1.element.mark, $1.offset)
            }
            guard let next else { break }
            change(next.element.id) { ($0.state, $0.owner, $0.startPriority) = (.running, member, 4) }
            taken.append(next.element.id)
        }
        return taken
    }

    mutating func giveBack(_ id: SessionID, isInterrupted: Bool) {
        change(id) {
            $0.owner = nil
            if $0.state == .running { ($0.state, $0.startPriority) = (.waiting, $0.startPriority == 4 ? 3 : $0.startPriority) }
            if $0.state == .paused { $0.state = .held }
        }
        released(id, isInterrupted: isInterrupted)
    }

    mutating func finish(_ id: SessionID, isCompleted: Bool) {
        change(id) { ($0.owner, $0.state, $0.displacedBy) = (nil, isCompleted ? .completed : .failed, nil) }
        released(id, isInterrupted: false)
    }

    /// Ends all leases of a member, as if the member had died.
    mutating func kill(_ member: String) {
        let ended = sessions.filter { $0.owner == member }.map(\.id)
        for id in ended {
            change(id) {
                $0.owner = nil
                if $0.state == .running { ($0.state, $0.startPriority) = (.waiting, $0.startPriority == 4 ? 3 : $0.startPriority) }
                if $0.state == .paused { $0.state = .held }
            }
        }
        for id in ended { released(id, isInterrupted: true) }
    }

    private mutating func released(_ id: SessionID, isInterrupted: Bool) {
        guard let session = self[id] else { return }
        if !(isInterrupted && session.state == .waiting), session.displacedBy == nil { restore(id) }
        displace(for: id)
        sessions.removeAll { $0.id == id && $0.isRemoved }
    }

    private mutating func restore(_ id: SessionID) {
        for session in sessions where session.displacedBy == id {
            change(session.id) { ($0.displacedBy, $0.startPriority) = (nil, min($0.startPriority, 2)) }
        }
    }

    /// - Returns: Whether the operation is valid.
    mutating func apply(_ operation: SessionOperation, _ id: SessionID) -> Bool {
        guard let session = self[id], !session.isRemoved else { return false }
        switch (operation, session.state) {
        case (.pause, .running): set(id, .paused)
        case (.pause, .waiting), (.hold, .waiting), (.hold, .running), (.hold, .paused): set(id, .held)
        case (.resume, .paused): set(id, .running)
        case (.resume, .held), (.release, .held), (.retry, .failed), (.retry, .cancelled): set(id, .waiting)
        case (.cancel, .waiting), (.cancel, .running), (.cancel, .paused), (.cancel, .held), (.cancel, .failed): set(id, .cancelled)
        case (.runNext, .waiting):
            mark += 1
            let mark = mark
            change(id) { if $0.startPriority > 0 { ($0.startPriority, $0.mark) = (1, mark) } }
        case (.run, .running): break
        case (.run, .paused): set(id, .running)
        case (.run, .waiting), (.run, .held), (.run, .failed), (.run, .cancelled):
            set(id, .waiting)
            mark += 1
            let mark = mark
            change(id) { ($0.startPriority, $0.mark) = (0, mark) }
            displace(for: id)
        case (.remove, _):
            if session.owner == nil {
                restore(id)
                sessions.removeAll { $0.id == id }
            } else {
                change(id) { ($0.state, $0.isRemoved) = (.cancelled, true) }
            }
        case (.move(.front), _): sessions.insert(sessions.remove(at: sessions.firstIndex(of: session) ?? 0), at: 0)
        case (.move(.end), _): sessions.append(sessions.remove(at: sessions.firstIndex(of: session) ?? 0))
        default: return false
        }
        return true
    }

    private mutating func set(_ id: SessionID, _ state: SessionState) {
        change(id) { ($0.state, $0.displacedBy) = (state, nil) }
        if self[id]?.owner == nil, state != .paused, state != .waiting { restore(id) }
    }

    private mutating func displace(for id: SessionID) {
        guard let preemptor = self[id], preemptor.owner == nil, preemptor.state == .waiting, preemptor.startPriority == 0,
            !slots.isEmpty
        else { return }
        let hasSlot = slots.contains { owned($0.key) < $0.value } && owned() < fleetLimit ?? .max
        let isAccountFull = owned() >= accountLimit ?? .max
        guard !hasSlot || isAccountFull, !sessions.contains(where: { $0.displacedBy == id && $0.owner != nil }) else { return }
        guard let victim = sessions.last(where: { $0.state == .running && $0.id != id && slots[$0.owner ?? ""] != nil }) else { return }
        change(victim.id) { ($0.state, $0.startPriority, $0.displacedBy) = (.waiting, 4, id) }
    }
}
