extension Sequence<String> {
    /// Returns the words that a user may have meant by a mistyped or shortened word: the words that begin with the given word, or otherwise the words
    /// with the fewest differences. Ignores case.
    ///
    /// Returns no words if more than half of the letters, and more than one letter, differ.
    package func nearest(to word: String) -> [String] {
        let word = word.lowercased()
        let completions = word.isEmpty ? [] : filter { $0.lowercased().hasPrefix(word) }
        guard completions.isEmpty else { return completions }
        let limit = Swift.max(1, word.count / 2)
        // The difference in length is a lower bound of the distance, so most words need no comparison with a long mistyped word.
        let distances = filter { abs($0.count - word.count) <= limit }.map { (word: $0, distance: distance($0.lowercased(), word)) }
        let minimum = distances.map(\.distance).min() ?? .max
        return minimum <= limit ? distances.filter { $0.distance == minimum }.map(\.word) : []
    }
}

/// The optimal string alignment distance: the number of insertions, deletions, replacements and swaps of neighbours that turn one word into the
/// other.
private func distance(_ first: String, _ second: String) -> Int {
    let (first, second) = (Array(first), Array(second))
    var secondPreviousRow: [Int] = []
    var previousRow = Array(0...second.count)
    for row in first.indices {
        var currentRow = [row + 1]
        for column in second.indices {
            var best = min(
                currentRow[column] + 1, previousRow[column + 1] + 1, previousRow[column] + (first[row] == second[column] ? 0 : 1))
            if row > 0, column > 0, first[row] == second[column - 1], first[row - 1] == second[column] {
                best = min(best, secondPreviousRow[column - 1] + 1)
            }
            currentRow.append(best)
        }
        (secondPreviousRow, previousRow) = (previousRow, currentRow)
    }
    return previousRow[second.count]
}
