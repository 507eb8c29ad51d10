import TransferControl
import TransferKit

/// Finds a session by the first characters of its ID.
enum SessionPrefix {
    private static let maximumListedCandidates = 10
    /// The maximum number of matching sessions to count.
    private static let limit = 10_000

    static func resolve(_ prefix: String, in queue: any ControllableQueue) async throws -> SessionID {
        let candidates = prefix.isEmpty ? [] : try await queue.sessionIDs(beginningWith: prefix, limit: limit)
        switch candidates.count {
        case 0: throw CommandFailure(.rejected, "There is no session \"\(prefix)\". To list sessions: transferq list")
        case 1: return candidates[0]
        default:
            var text = "\"\(prefix)\" matches \(candidates.count) sessions. Use more characters of the ID:"
            for candidate in candidates.prefix(maximumListedCandidates) { text += "\n  \(candidate)" }
            if candidates.count > maximumListedCandidates { text += "\n  … and \(candidates.count - maximumListedCandidates) more" }
            throw CommandFailure(.rejected, text)
        }
    }
}
