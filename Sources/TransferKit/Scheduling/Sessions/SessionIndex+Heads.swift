/// Finds the next session to start among all lines, without a search through each line.
extension SessionIndex {
    /// The position of a session in the order in which sessions start.
    struct Standing: Comparable {
        var startPriority: Entry.StartPriority
        var mark: Int64
        var rank: Int64

        static func < (left: Standing, right: Standing) -> Bool {
            if left.startPriority != right.startPriority { return left.startPriority < right.startPriority }
            if left.startPriority <= .next, left.mark != right.mark { return left.mark > right.mark }
            return left.rank < right.rank
        }
    }

    /// The session that starts first, among the sessions of all lines that are not set aside.
    mutating func firstInLine() -> (line: LineKey, entry: Entry)? {
        while let head = heads.first {
            if lines[head.line]?.first == head.key, let entry = self[head.key], standing(entry) == head.standing {
                return (head.line, entry)
            }
            heads.removeFirst()
        }
        return nil
    }

    /// Sets aside the line whose head starts first, because none of its sessions can start before `time`, an uptime. If `time` is nil, only
    /// an event recalls the line.
    mutating func setFirstLineAside(until time: Duration?) {
        heads.setFirstAside(until: time)
    }

    /// Recalls the lines of an account after a change that may let its sessions start.
    mutating func recallLines(of account: AccountKey) {
        for needsCheapNetwork in [false, true] {
            let line = LineKey(account: account, needsCheapNetwork: needsCheapNetwork)
            if heads.recall(line) { putHead(of: line) }
        }
    }

    /// The number of lines that are set aside.
    package var linesAside: Int { heads.asideCount }

    /// The maximum number of keys that a change of one session moves in an ordered container.
    package var largestPart: Int {
        let containers = [order, unfinished, prioritized.keys] + lines.values.flatMap { [$0.prioritized.keys, $0.inOrder] }
        return containers.map(\.largestPart).max() ?? 0
    }

    /// The number of eligible sessions of an account.
    func eligible(of account: AccountKey) -> Int {
        [false, true].reduce(0) { $0 + (lines[LineKey(account: account, needsCheapNetwork: $1)]?.count ?? 0) }
    }

    /// Recalls all lines after a change that may let their sessions start.
    mutating func recallAllLines() {
        for line in heads.recallAll() { putHead(of: line) }
    }

    /// Recalls the lines whose recall time has passed.
    mutating func recallLines(by uptime: Duration) {
        for line in heads.recall(by: uptime) { putHead(of: line) }
    }

    /// Adds the first session of a line to the heads.
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

    /// The session directly before an eligible session, among the sessions in the lines that the predicate accepts.
    ///
    /// Examines the preceding sessions one by one, but at most as many as there are lines. If more steps would be needed, searches each
    /// line instead.
    func last(before entry: Entry, where isAcceptable: (LineKey) -> Bool) -> Entry? {
        var steps = lines.count
        if entry.startPriority == .none {
            var position = index(of: entry.key) ?? 0
            while position > 0, steps > 0 {
                position -= 1
                steps -= 1
                guard let other = self[order[position]], other.isEligible, other.startPriority == .none, isAcceptable(other.line) else {
                    continue
                }
                return other
            }
        }
        var position = prioritized.count(before: standing(entry), standing: standings())
        while position > 0, steps > 0 {
            position -= 1
            steps -= 1
            if let other = self[prioritized.keys[position]], isAcceptable(other.line) { return other }
        }
        return steps > 0 ? nil : lastOfLines(before: entry, where: isAcceptable)
    }

    private func lastOfLines(before entry: Entry, where isAcceptable: (LineKey) -> Bool) -> Entry? {
        let standing = standing(entry)
        var before: Entry?
        for (key, line) in lines where isAcceptable(key) {
            guard let other = last(of: line, before: standing) else { continue }
            if before.map({ self.standing($0) < self.standing(other) }) ?? true { before = other }
        }
        return before
    }

    /// The last session of a line before a standing.
    private func last(of line: Line, before standing: Standing) -> Entry? {
        if standing.startPriority == .none {
            let index = line.inOrder.insertionIndex(forRank: standing.rank) { self[$0]?.rank ?? 0 }
            if index > 0 { return self[line.inOrder[index - 1]] }
        }
        let count = line.prioritized.count(before: standing, standing: standings())
        return count > 0 ? self[line.prioritized.keys[count - 1]] : nil
    }
}
