import HeapModule

/// The first session of each line, so that the first of all is found without a look at each line.
///
/// A line of which nothing can start at present is set aside, and recalled once that may have changed.
struct LineHeads: Sendable {
    typealias LineKey = Roster.LineKey

    struct Head: Sendable, Comparable {
        var standing: Roster.Standing
        var key: SessionKey
        var line: LineKey

        static func < (left: Self, right: Self) -> Bool { left.standing < right.standing }
    }

    private struct Recall: Sendable, Comparable {
        /// As uptime.
        var time: Duration
        var line: LineKey

        static func < (left: Self, right: Self) -> Bool { left.time < right.time }
    }

    /// A head that was replaced stays in here until it comes first.
    private var heap = Heap<Head>()
    /// Until when each is set aside, as uptime; `nil` for those that no time brings back.
    private var aside: [LineKey: Duration?] = [:]
    private var recalls = Heap<Recall>()

    var count: Int { heap.count }

    /// The first of all, which may have been replaced.
    var first: Head? { heap.min }

    /// When the next line is recalled, as uptime.
    var nextRecall: Duration? { recalls.min?.time }

    mutating func put(_ key: SessionKey, _ standing: Roster.Standing, first line: LineKey) {
        if aside.isEmpty || aside[line] == nil { heap.insert(Head(standing: standing, key: key, line: line)) }
    }

    mutating func removeFirst() {
        _ = heap.popMin()
    }

    /// Takes out all heads, also those that were replaced.
    mutating func removeAll() {
        heap = Heap()
    }

    /// Takes the line of the first head out, until a time, or, with nil, until it is recalled.
    mutating func setFirstAside(until time: Duration?) {
        guard let line = heap.popMin()?.line else { return }
        aside.updateValue(time, forKey: line)
        if let time { recalls.insert(Recall(time: time, line: line)) }
    }

    /// - Returns: Whether the line was set aside: its head has to be put in again.
    mutating func recall(_ line: LineKey) -> Bool {
        !aside.isEmpty && aside.removeValue(forKey: line) != nil
    }

    /// - Returns: The lines that were set aside.
    mutating func recallAll() -> [LineKey] {
        guard !aside.isEmpty else { return [] }
        defer {
            aside = [:]
            recalls = Heap()
        }
        return Array(aside.keys)
    }

    /// - Returns: The lines whose time has come.
    mutating func recall(by uptime: Duration) -> [LineKey] {
        var lines: [LineKey] = []
        while let first = recalls.min, first.time <= uptime {
            _ = recalls.popMin()
            if let time = aside[first.line], let time, time <= uptime, recall(first.line) { lines.append(first.line) }
        }
        return lines
    }
}
