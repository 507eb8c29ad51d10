extension Sequence<String> {
    /// Returns the words that a user may have meant by a misspelt word: the words that begin with the misspelt word, or otherwise the words with the
    /// fewest differences. Ignores case.
    ///
    /// Returns no words if more than half of the letters, and more than one letter, differ.
    package func nearest(to word: String) -> [String] {
        let word = word.lowercased()
        let longer = word.isEmpty ? [] : filter { $0.lowercased().hasPrefix(word) }
        guard longer.isEmpty else { return longer }
        let limit = Swift.max(1, word.count / 2)
        // The difference of the lengths is a lower bound of the distance, so most words need no comparison with a long misspelt word.
        let distances = filter { abs($0.count - word.count) <= limit }.map { (word: $0, distance: distance($0.lowercased(), word)) }
        let least = distances.map(\.distance).min() ?? .max
        return least <= limit ? distances.filter { $0.distance == least }.map(\.word) : []
    }
}

/// The optimal string alignment distance: the number of insertions, deletions, replacements and swaps of neighbours that turn one word into the
/// other.
private func distance(_ first: String, _ second: String) -> Int {
    let (first, second) = (Array(first), Array(second))
    var before: [Int] = []
    var last = Array(0...second.count)
    for row in first.indices {
        var line = [row + 1]
        for column in second.indices {
            var best = min(line[column] + 1, last[column + 1] + 1, last[column] + (first[row] == second[column] ? 0 : 1))
            if row > 0, column > 0, first[row] == second[column - 1], first[row - 1] == second[column] {
                best = min(best, before[column - 1] + 1)
            }
            line.append(best)
        }
        (before, last) = (last, line)
    }
    return last[second.count]
}
