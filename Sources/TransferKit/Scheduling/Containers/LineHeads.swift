import HeapModule

/// The first session of each line. Finds the first session of all lines without a search through each line.
///
/// A line contains the eligible sessions of one account with the same network requirement (``SessionIndex/LineKey``). It is set aside while none of
/// its sessions can start, and recalled once one of them may be able to start.
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

    /// A replaced head stays in the heap until it comes first.
    private var heap = Heap<Head>()
    /// The uptime until which each line is set aside; `nil` for a line that only an event recalls.
    private var aside: [LineKey: Duration?] = [:]
    private var recalls = Heap<Recall>()

    var count: Int { heap.count }

    /// The first head, which may have been replaced.
    var first: Head? { heap.min }

    /// The uptime at which the next line is recalled.
    var nextRecall: Duration? { recalls.min?.time }

    mutating func put(_ key: SessionKey, _ standing: SessionIndex.Standing, first line: LineKey) {
        if aside.isEmpty || aside[line] == nil { heap.insert(Head(standing: standing, key: key, line: line)) }
    }

    mutating func removeFirst() {
        _ = heap.popMin()
    }

    /// Removes all heads, including replaced heads.
    mutating func removeAll() {
        heap = Heap()
    }

    /// Sets the line of the first head aside until an uptime, or, with nil, until it is recalled.
    mutating func setFirstAside(until time: Duration?) {
        guard let line = heap.popMin()?.line else { return }
        aside.updateValue(time, forKey: line)
        if let time { recalls.insert(Recall(time: time, line: line)) }
    }

    /// Recalls one line.
    ///
    /// - Returns: Whether the line was set aside; if so, add its head again.
    mutating func recall(_ line: LineKey) -> Bool {
        !aside.isEmpty && aside.removeValue(forKey: line) != nil
    }

    /// Recalls all lines.
    ///
    /// - Returns: The lines that were set aside.
    mutating func recallAll() -> [LineKey] {
        guard !aside.isEmpty else { return [] }
        defer {
            aside = [:]
            recalls = Heap()
        }
        return Array(aside.keys)
    }

    /// Recalls the lines whose time has come.
    ///
    /// - Returns: These lines.
    mutating func recall(by uptime: Duration) -> [LineKey] {
        var lines: [LineKey] = []
        while let first = recalls.min, first.time <= uptime {
            _ = recalls.popMin()
            if let time = aside[first.line], let time, time <= uptime, recall(first.line) { lines.append(first.line) }
        }
        return lines
    }
}
