import HeapModule

/// The first session (the head) of each line, in the order in which the heads start. Finds the next session to start without a search through each
/// line.
///
/// A line contains the eligible sessions of one account with the same network requirement (``SessionIndex/LineKey``). The scheduler sets a
/// line aside while none of its sessions can start, and recalls the line when one of them may be able to start.
///
/// Also groups the lines by obstacle, so that queries can skip the lines whose sessions can't start. In these groups, a line exists while
/// it contains a session, or while a session that waits only for a point in time (``Entry/isTimed``) will join it.
struct LineHeads: Sendable {
    typealias LineKey = SessionIndex.LineKey

    struct Head: Sendable, Comparable {
        var standing: SessionIndex.Standing
        var key: SessionKey
        var line: LineKey

        static func < (left: Self, right: Self) -> Bool { left.standing < right.standing }
    }

    /// The reason why a line is set aside.
    enum Obstacle {
        /// The account has no free slot.
        case noSlot
        /// No session of the line can start before an uptime.
        case time(Duration)
        /// No session of the line can start before an event, such as an action by the app or the user.
        case event
    }

    private struct Recall: Sendable, Comparable {
        /// The uptime of the recall.
        var time: Duration
        var line: LineKey

        static func < (left: Self, right: Self) -> Bool { left.time < right.time }
    }

    /// The heads. If a line gets another head or is set aside, the previous head stays in the heap until it reaches the front.
    private var heap = Heap<Head>()
    /// The lines whose sessions can start, as far as is known, if their accounts have free slots. Each existing line is in ``ready``, ``later`` or
    /// ``closed``.
    private(set) var ready: Set<LineKey> = []
    /// The lines in ``ready`` that are set aside because their accounts have no free slot.
    private(set) var full: Set<LineKey> = []
    /// The lines that are set aside until an uptime.
    private(set) var later: [LineKey: Duration] = [:]
    /// The lines that are set aside until an event.
    private var closed: Set<LineKey> = []
    /// The lines in ``ready`` that the scheduler has not examined since they were added or recalled.
    private var unexamined: Set<LineKey> = []
    /// The recall times. If a line was recalled early, its recall time stays in the heap until it reaches the front. The first recall time
    /// always belongs to a line in ``later``.
    private var recalls = Heap<Recall>()

    var count: Int { heap.count }

    /// The head that starts first; nil if there are no heads. The caller must check that the session is still the head of its line, and that
    /// the line is not set aside.
    var first: Head? { heap.min }

    /// The earliest recall time of the lines that are set aside; nil if no such line has a recall time.
    var nextRecall: Duration? { recalls.min?.time }

    var asideCount: Int { later.count + closed.count + full.count }

    func isAside(_ line: LineKey) -> Bool { !ready.contains(line) || full.contains(line) }

    mutating func add(_ line: LineKey) {
        guard later[line] == nil, !closed.contains(line), ready.insert(line).inserted else { return }
        unexamined.insert(line)
    }

    mutating func remove(_ line: LineKey) {
        ready.remove(line)
        full.remove(line)
        closed.remove(line)
        unexamined.remove(line)
        if later.removeValue(forKey: line) != nil { removeOutdatedRecalls() }
    }

    /// Adds the first session of a line, unless the line is set aside.
    mutating func put(_ key: SessionKey, _ standing: SessionIndex.Standing, of line: LineKey) {
        add(line)
        if !isAside(line) { heap.insert(Head(standing: standing, key: key, line: line)) }
    }

    mutating func removeFirst() {
        _ = heap.popMin()
    }

    mutating func removeAll() {
        heap = Heap()
    }

    mutating func setAside(_ line: LineKey, _ obstacle: Obstacle) {
        guard ready.contains(line) else { return }
        switch obstacle {
        case .noSlot:
            full.insert(line)
            return
        case .time(let time):
            later[line] = time
            recalls.insert(Recall(time: time, line: line))
        case .event: closed.insert(line)
        }
        ready.remove(line)
        full.remove(line)
        unexamined.remove(line)
    }

    /// Returns lines that the scheduler must examine, because they were added or recalled. After the call, these lines count as examined.
    ///
    /// - Parameter limit: The maximum number of lines.
    mutating func takeUnexamined(_ limit: Int) -> [LineKey] {
        let lines = Array(unexamined.prefix(limit))
        if lines.count == unexamined.count { unexamined = [] } else { unexamined.subtract(lines) }
        return lines
    }

    /// - Returns: Whether the line was set aside. If so, the caller must add its head again.
    mutating func recall(_ line: LineKey) -> Bool {
        var wasAside = full.remove(line) != nil || closed.remove(line) != nil
        if later.removeValue(forKey: line) != nil {
            wasAside = true
            removeOutdatedRecalls()
        }
        if wasAside { ready.insert(line) }
        if ready.contains(line) { unexamined.insert(line) }
        return wasAside
    }

    private mutating func removeOutdatedRecalls() {
        while let first = recalls.min, later[first.line] != first.time { _ = recalls.popMin() }
        // Rebuild the heap before outdated recall times accumulate.
        guard recalls.count > 64 + 4 * later.count else { return }
        recalls = Heap(later.map { line, time in Recall(time: time, line: line) })
    }

    /// - Returns: The lines that were set aside. The caller must add their heads again.
    mutating func recallAll() -> [LineKey] {
        let lines = Array(later.keys) + Array(closed) + Array(full)
        ready.formUnion(lines)
        unexamined = ready
        later = [:]
        closed = []
        full = []
        recalls = Heap()
        return lines
    }

    /// Recalls the lines whose recall time has passed.
    ///
    /// - Returns: The recalled lines. The caller must add their heads again.
    mutating func recall(by uptime: Duration) -> [LineKey] {
        var lines: [LineKey] = []
        while let first = recalls.min, first.time <= uptime, recall(first.line) { lines.append(first.line) }
        return lines
    }
}
