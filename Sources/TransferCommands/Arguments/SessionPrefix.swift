import TransferControl
import TransferKit

/// Finds a session by the first characters of its ID, or by its index in the queue, written as `#3`.
enum SessionPrefix {
    /// The minimum number of characters of a prefix. A short number, such as `3`, is probably an index without its `#`.
    private static let minimumLength = 4
    private static let maximumListedCandidates = 10

    static let help = "The ID (at least 4 characters), or an index: '#3'"
    static let manyHelp = "IDs (at least 4 characters each), or indices: '#3'"

    private static let maximumCountedMatches = 10_000

    /// Returns the ID of the session that an ID prefix or an index identifies.
    ///
    /// - Throws: A `CommandFailure` if the text is invalid, no session matches, or several sessions match.
    static func resolve(_ prefix: String, in queue: any ControllableQueue) async throws -> SessionID {
        if prefix.hasPrefix("#") { return try await session(at: String(prefix.dropFirst()), in: queue) }
        guard prefix.isEmpty || prefix.count >= minimumLength else {
            throw CommandFailure(
                .usage,
                "\"\(prefix)\" is too short. Give at least \(minimumLength) characters of the ID.\(indexAdvice(for: prefix))")
        }
        let candidates = prefix.isEmpty ? [] : try await queue.sessionIDs(beginningWith: prefix, limit: maximumCountedMatches)
        switch candidates.count {
        case 0: throw try await unknown(prefix, in: queue)
        case 1: return candidates[0]
        default:
            var text = "\"\(prefix)\" matches \(candidates.count) sessions. Use more characters of the ID:"
            for candidate in candidates.prefix(maximumListedCandidates) { text += "\n  \(candidate)" }
            if candidates.count > maximumListedCandidates { text += "\n  … and \(candidates.count - maximumListedCandidates) more" }
            throw CommandFailure(.rejected, text)
        }
    }

    private static func session(at text: String, in queue: any ControllableQueue) async throws -> SessionID {
        guard let index = Int(text), index >= 0 else {
            throw CommandFailure(.usage, "\"#\(text)\" is not an index. Write # and a number of at least 0, such as '#3'.")
        }
        guard index < Int.max, let found = try await queue.sessions(index..<index + 1).first?.id else {
            throw CommandFailure(.rejected, "There is no session at index \(index). To list sessions: transferq list")
        }
        return found
    }

    /// The error for a prefix that matches no ID. The message names sessions whose IDs begin with the prefix's first three characters.
    private static func unknown(_ prefix: String, in queue: any ControllableQueue) async throws -> CommandFailure {
        let start = String(prefix.prefix(minimumLength - 1))
        let near = prefix.isEmpty ? [] : try await queue.sessionIDs(beginningWith: start, limit: maximumListedCandidates)
        let advice = near.isEmpty ? "" : " Did you mean \(distinctPrefixes(of: near).joined(separator: " or "))?"
        return CommandFailure(
            .rejected, "There is no session \"\(prefix)\".\(advice)\(indexAdvice(for: prefix)) To list sessions: transferq list")
    }

    /// The shortest prefixes that distinguish the IDs. All prefixes have the same length: one to four groups of hexadecimal digits, or the whole
    /// ID.
    private static func distinctPrefixes(of ids: [SessionID]) -> [String] {
        let texts = ids.map(\.description)
        let prefixes = [SessionDescription.shortIDLength, 13, 18, 23].lazy.map { length in texts.map { String($0.prefix(length)) } }
        return prefixes.first { Set($0).count == ids.count } ?? texts
    }

    /// Advice for a number, which the user may have meant as an index; empty for other text.
    private static func indexAdvice(for text: String) -> String {
        guard text.allSatisfy({ ("0"..."9").contains($0) }), let index = Int(text) else { return "" }
        return " For the session at index \(index), write '#\(index)'."
    }
}
