import HeapModule

/// The first session (the head) of each line, in the order in which the heads start. Finds the next session to start without a search through each
/// line.
///
/// A line contains the eligible sessions of one account with the same network requirement (``SessionIndex/LineKey``). The scheduler sets a
/// line aside while none of its sessions can start, and recalls the line when one of them may be able to start.
struct LineHeads: Sendable {
    typealias LineKey = SessionIndex.LineKey

    struct Head: Sendable, Comparable {
        var standing: SessionIndex.Standing
        var key: SessionKey
        var line: LineKey

        static func < (left: Self, right: Self) -> Bool { left.standing < right.standing }
    }

    private struct Recall: Sendable, Comparable {
        /// The uptime of the recall.
        var time: Duration
        var line: LineKey

        static func < (left: Self, right: Self) -> Bool { left.time < right.time }
    }

    /// The heads. If a line gets another head, the replaced head stays in the heap until it reaches the front.
    private var heap = Heap<Head>()
    /// The lines that are set aside, with the uptime at which each is recalled; `nil` for a line that only an event recalls.
    private var aside: [LineKey: Duration?] = [:]
    /// The recall times. If a line was recalled early, its entry stays until it reaches the front. The first entry always belongs to a line that
    /// is set aside.
    private var recalls = Heap<Recall>()

    var count: Int { heap.count }

    /// The head that starts first; nil if there are no heads. The caller must check that the session is still the head of its line.
    var first: Head? { heap.min }

    /// The earliest recall time of the lines that are set aside; nil if no such line has a recall time.
    var nextRecall: Duration? { recalls.min?.time }

    /// The number of lines that are set aside.
    var asideCount: Int { aside.count }

    /// Adds the first session of a line, unless the line is set aside.
    mutating func put(_ key: SessionKey, _ standing: SessionIndex.Standing, of line: LineKey) {
        if aside.isEmpty || aside[line] == nil { heap.insert(Head(standing: standing, key: key, line: line)) }
    }

    mutating func removeFirst() {
        _ = heap.popMin()
    }

    /// Removes all heads, including replaced heads.
    mutating func removeAll() {
        heap = Heap()
    }

    /// Sets aside the line of the first head until an uptime. If `time` is nil, only an event recalls the line.
    mutating func setFirstAside(until time: Duration?) {
        guard let line = heap.popMin()?.line else { return }
        let before = aside.updateValue(time, forKey: line)
        if let time { recalls.insert(Recall(time: time, line: line)) }
        if before != nil { removeOutdatedRecalls() }
    }

    /// Recalls one line.
    ///
    /// - Returns: Whether the line was set aside. If so, the caller must add its head again.
    mutating func recall(_ line: LineKey) -> Bool {
        guard !aside.isEmpty, aside.removeValue(forKey: line) != nil else { return false }
        removeOutdatedRecalls()
        return true
    }

    private mutating func removeOutdatedRecalls() {
        while let first = recalls.min, aside[first.line] != .some(first.time) { _ = recalls.popMin() }
        // Rebuild the heap before outdated entries accumulate.
        guard recalls.count > 64 + 4 * aside.count else { return }
        recalls = Heap(aside.compactMap { line, time in time.map { Recall(time: $0, line: line) } })
    }

    /// Recalls all lines.
    ///
    /// - Returns: The lines that were set aside. The caller must add their heads again.
    mutating func recallAll() -> [LineKey] {
        guard !aside.isEmpty else { return [] }
        defer {
            aside = [:]
            recalls = Heap()
        }
        return Array(aside.keys)
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
