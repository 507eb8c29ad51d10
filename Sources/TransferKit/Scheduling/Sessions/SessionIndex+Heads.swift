import HeapModule

/// Finds the next session to start among all lines, without a search through each line.
extension SessionIndex {
    /// The properties that determine whether sessions can start. Eligible sessions with the same properties form a line.
    package struct LineKey: Sendable, Hashable {
        package var account: AccountKey
        package var needsCheapNetwork = false
    }

    /// The eligible sessions of one line. See ``Entry/isEligible``.
    package struct Line: Sendable, Equatable {
        /// The sessions with a start priority, in the order in which they start. They start before the sessions in ``inOrder``.
        var prioritized = PrioritizedKeys()
        var inOrder = RankedKeys()

        var isEmpty: Bool { prioritized.isEmpty && inOrder.isEmpty }
        var count: Int { prioritized.count + inOrder.count }
        var first: SessionKey? { prioritized.first ?? inOrder.first }

        /// The session at a position in the order in which the sessions of the line start; nil if the line is shorter.
        subscript(position: Int) -> SessionKey? {
            guard position < count else { return nil }
            return position < prioritized.count ? prioritized.keys[position] : inOrder[position - prioritized.count]
        }
    }

    /// The position of a session in the order in which sessions start.
    struct Standing: Comparable {
        var startPriority: Entry.StartPriority
        var mark: Int64
        var rank: Int64

        /// The position directly after all sessions with the start priority ``Entry/StartPriority/now``.
        static let afterClaimants = Standing(startPriority: .now, mark: .min, rank: .max)

        static func < (left: Standing, right: Standing) -> Bool {
            if left.startPriority != right.startPriority { return left.startPriority < right.startPriority }
            if left.startPriority <= .next, left.mark != right.mark { return left.mark > right.mark }
            return left.rank < right.rank
        }
    }

    /// The session that starts first, among the sessions of all lines that are not set aside.
    mutating func firstInLine() -> (line: LineKey, entry: Entry)? {
        while let head = heads.first {
            if !heads.isAside(head.line), lines[head.line]?.first == head.key, let entry = self[head.key],
                standing(entry) == head.standing
            {
                return (head.line, entry)
            }
            heads.removeFirst()
        }
        return nil
    }

    mutating func recallLines(of account: AccountKey) {
        for needsCheapNetwork in [false, true] {
            let line = LineKey(account: account, needsCheapNetwork: needsCheapNetwork)
            if heads.recall(line) { putHead(of: line) }
        }
    }

    package var linesAside: Int { heads.asideCount }

    /// The maximum number of lines that ``last(before:at:where:)`` visits, unless a recall is overdue.
    package var readyLines: Int { min(heads.ready.count, lines.count) }

    /// The lines with a session that, as far as is known, can start now, or later just because time passes. Excludes the lines that are set
    /// aside until an event.
    package var startableLines: some Sequence<LineKey> { [AnySequence(heads.ready), AnySequence(heads.later.keys)].joined() }

    /// The maximum number of keys that a change of one session moves in an ordered container.
    package var largestBlock: Int {
        let containers = [order, unfinished, prioritized.keys] + lines.values.flatMap { [$0.prioritized.keys, $0.inOrder] }
        return containers.map(\.largestBlock).max() ?? 0
    }

    func eligible(of account: AccountKey) -> Int {
        [false, true].reduce(0) { $0 + (lines[LineKey(account: account, needsCheapNetwork: $1)]?.count ?? 0) }
    }

    mutating func recallAllLines() {
        for line in heads.recallAll() { putHead(of: line) }
    }

    mutating func recallLines(by uptime: Duration) {
        for line in heads.recall(by: uptime) { putHead(of: line) }
    }

    mutating func updateHeads(of line: LineKey) {
        if lines[line] == nil, timed[line] == nil { heads.remove(line) } else { heads.add(line) }
    }

    mutating func putHead(of line: LineKey) {
        guard let key = lines[line]?.first, let entry = self[key] else { return }
        heads.put(key, standing(entry), of: line)
        // Rebuild the heads before replaced heads accumulate.
        guard heads.count > 64 + 4 * lines.count else { return }
        heads.removeAll()
        for (line, sessions) in lines {
            if let key = sessions.first, let entry = self[key] { heads.put(key, standing(entry), of: line) }
        }
    }

    // MARK: Queries

    /// The eligible sessions that would start first if all could start. Visits each line once, and then one session for each result.
    func first(_ limit: Int) -> [SessionKey] {
        var heap = Heap(
            lines.compactMap { line, sessions in
                sessions.first.flatMap { self[$0] }.map { LineHeads.Head(standing: standing($0), key: $0.key, line: line) }
            })
        var positions: [LineKey: Int] = [:]
        var keys: [SessionKey] = []
        while keys.count < limit, let head = heap.popMin() {
            keys.append(head.key)
            positions[head.line, default: 0] += 1
            guard let key = lines[head.line]?[positions[head.line, default: 0]], let entry = self[key] else { continue }
            heap.insert(LineHeads.Head(standing: standing(entry), key: key, line: head.line))
        }
        return keys
    }

    /// The session directly before an eligible session, among the sessions in the lines that the predicate accepts. The predicate must
    /// accept only lines whose sessions could start if they had slots.
    ///
    /// Skips lines that are set aside for a reason other than a missing slot.
    package func last(before entry: Entry, at uptime: Duration, where isAcceptable: (LineKey) -> Bool) -> Entry? {
        let index = entry.startPriority == .none ? index(of: entry.key) ?? 0 : 0
        return last(before: standing(entry), index: index, at: uptime, where: isAcceptable)
    }

    /// The last session before a standing, among the sessions in the lines that the predicate accepts.
    ///
    /// Examines the preceding sessions one by one, but at most as many as there are lines to visit. If more steps would be needed, searches
    /// each of these lines instead.
    ///
    /// - Parameter index: The index of the standing in the order; 0 if the standing has a start priority.
    func last(before standing: Standing, index: Int = 0, at uptime: Duration, where isAcceptable: (LineKey) -> Bool) -> Entry? {
        // If a recall time has passed, but the scheduler has not recalled the line yet, a line that is set aside may be acceptable.
        let isCurrent = heads.nextRecall.map { $0 > uptime } ?? true
        if isCurrent, !hasHead(before: standing) { return nil }
        var steps = isCurrent ? readyLines : lines.count
        var position = index
        while position > 0, steps > 0 {
            position -= 1
            steps -= 1
            guard let other = self[order[position]], other.isEligible, other.startPriority == .none, isAcceptable(other.line) else {
                continue
            }
            return other
        }
        position = prioritized.count(before: standing, standing: standings())
        while position > 0, steps > 0 {
            position -= 1
            steps -= 1
            if let other = self[prioritized.keys[position]], isAcceptable(other.line) { return other }
        }
        if steps > 0 { return nil }
        return isCurrent && heads.ready.count < lines.count
            ? last(of: heads.ready, before: standing, where: isAcceptable) : last(of: lines.keys, before: standing, where: isAcceptable)
    }

    /// Whether the head of any line starts before a standing. Ignores lines that are set aside for a reason other than a missing slot. May
    /// also return true because of a replaced head.
    private func hasHead(before standing: Standing) -> Bool {
        if let first = heads.first, first.standing < standing { return true }
        return heads.full.contains { line in
            lines[line]?.first.flatMap { self[$0] }.map { self.standing($0) < standing } ?? false
        }
    }

    private func last(of keys: some Sequence<LineKey>, before standing: Standing, where isAcceptable: (LineKey) -> Bool) -> Entry? {
        var before: Entry?
        for key in keys {
            guard let line = lines[key], let other = last(of: line, before: standing),
                before.map({ self.standing($0) < self.standing(other) }) ?? true, isAcceptable(key)
            else { continue }
            before = other
        }
        return before
    }

    /// In a strict queue, the last session before `entry` that has begun, is eligible, and is in a line that the predicate accepts.
    func lastBegun(before entry: Entry, where isAcceptable: (LineKey) -> Bool) -> Entry? {
        var position = begun.insertionIndex(forRank: entry.rank) { self[$0]?.rank ?? 0 }
        while position > 0 {
            position -= 1
            if let other = self[begun[position]], other.isEligible, isAcceptable(other.line) { return other }
        }
        return nil
    }

    private func last(of line: Line, before standing: Standing) -> Entry? {
        if standing.startPriority == .none {
            let index = line.inOrder.insertionIndex(forRank: standing.rank) { self[$0]?.rank ?? 0 }
            if index > 0 { return self[line.inOrder[index - 1]] }
        }
        let count = line.prioritized.count(before: standing, standing: standings())
        return count > 0 ? self[line.prioritized.keys[count - 1]] : nil
    }
}
