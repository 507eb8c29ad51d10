/// Which session goes first, without a look at each account.
extension Roster {
    /// The first session of all lines that are not set aside.
    mutating func firstInLine() -> (line: LineKey, entry: Entry)? {
        while let head = heads.first {
            if lines[head.line]?.first == head.key, let entry = self[head.key], standing(entry) == head.standing {
                return (head.line, entry)
            }
            heads.removeFirst()
        }
        return nil
    }

    /// Nothing of the line whose session is first in line can start before a time, as uptime, or, with nil, before something happens.
    mutating func setFirstLineAside(until time: Duration?) {
        heads.setFirstAside(until: time)
    }

    /// What keeps an account's sessions from starting may have changed.
    mutating func recallLines(of account: AccountKey) {
        for needsCheapNetwork in [false, true] {
            let line = LineKey(account: account, needsCheapNetwork: needsCheapNetwork)
            if heads.recall(line) { putHead(of: line) }
        }
    }

    /// How many sessions of an account wait for nothing of their own.
    func eligible(of account: AccountKey) -> Int {
        [false, true].reduce(0) { $0 + (lines[LineKey(account: account, needsCheapNetwork: $1)]?.count ?? 0) }
    }

    /// What keeps the sessions of any account from starting may have changed.
    mutating func recallAllLines() {
        for line in heads.recallAll() { putHead(of: line) }
    }

    mutating func recallLines(by uptime: Duration) {
        for line in heads.recall(by: uptime) { putHead(of: line) }
    }

    /// Lets the first session of a line be found.
    mutating func putHead(of line: LineKey) {
        guard let key = lines[line]?.first, let entry = self[key] else { return }
        heads.put(key, standing(entry), first: line)
        // Those that were replaced, and never came first, must not add up.
        guard heads.count > 64 + 4 * lines.count else { return }
        heads.removeAll()
        for (line, sessions) in lines {
            if let key = sessions.first, let entry = self[key] { heads.put(key, standing(entry), first: line) }
        }
    }

    /// The session directly before one that waits for nothing of its own, of those that go by an order that the body accepts.
    ///
    /// Looks at no more sessions than there are lines, before it looks at each line instead.
    func last(before entry: Entry, where isAcceptable: (LineKey) -> Bool) -> Entry? {
        var steps = lines.count
        if entry.lane == .none {
            var place = index(of: entry.key) ?? 0
            while place > 0, steps > 0 {
                place -= 1
                steps -= 1
                guard let other = self[order[place]], other.isEligible, other.lane == .none, isAcceptable(other.line) else { continue }
                return other
            }
        }
        var place = marked.count(before: standing(entry), standing: standings())
        while place > 0, steps > 0 {
            place -= 1
            steps -= 1
            if let other = self[marked.keys[place]], isAcceptable(other.line) { return other }
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

    /// The last session of a line that goes before a standing.
    private func last(of line: Line, before standing: Standing) -> Entry? {
        if standing.lane == .none {
            let index = line.inOrder.insertionIndex(forRank: standing.rank) { self[$0]?.rank ?? 0 }
            if index > 0 { return self[line.inOrder[index - 1]] }
        }
        let count = line.marked.count(before: standing, standing: standings())
        return count > 0 ? self[line.marked.keys[count - 1]] : nil
    }
}
