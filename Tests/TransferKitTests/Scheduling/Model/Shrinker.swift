import Foundation
import TransferKit

enum Shrinker {
    /// Removes steps, many at a time at first, as long as the sequence still fails.
    static func shortest(_ sequence: ModelSequence, fails: (ModelSequence) -> Bool) -> ModelSequence {
        var shortest = sequence
        var size = max(shortest.steps.count / 2, 1)
        while true {
            var hasShrunk = false
            var start = 0
            while start < shortest.steps.count {
                var candidate = shortest
                candidate.steps.removeSubrange(start..<min(start + size, candidate.steps.count))
                if fails(candidate) {
                    shortest = candidate
                    hasShrunk = true
                } else {
                    start += size
                }
            }
            if size == 1, !hasShrunk { return shortest }
            size = max(size / 2, 1)
        }
    }

    /// Describes a failure: the disagreement, and a shortened sequence that still causes a disagreement, also as JSON that can be replayed.
    static func report(_ sequence: ModelSequence, seed: UInt64, _ first: Disagreement) throws -> String {
        let shortest = shortest(sequence) { candidate in
            do throws(Disagreement) {
                try ModelRun.play(candidate)
                return false
            } catch {
                return true
            }
        }
        var last = first
        do throws(Disagreement) { try ModelRun.play(shortest) } catch { last = error }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let steps = shortest.steps.map { "  \($0.wait) s: \($0.kind)" }.joined(separator: "\n")
        return """
            seed \(seed): \(first)
            shortest: \(last)
            \(steps)
            replay: \(String(decoding: try encoder.encode(shortest), as: UTF8.self))
            """
    }
}
