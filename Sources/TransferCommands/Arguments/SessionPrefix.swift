import TransferControl
import TransferKit

/// Finds the session that the first characters of an ID stand for.
enum SessionPrefix {
    private static let namedCandidates = 10
    /// How many are looked for; there is no use in counting more.
    private static let limit = 10_000

    static func resolve(_ prefix: String, in queue: any ControllableQueue) async throws -> SessionID {
        let candidates = prefix.isEmpty ? [] : try await queue.sessionIDs(beginningWith: prefix, limit: limit)
        switch candidates.count {
        case 0: throw CommandFailure(.unfit, "There is no session \"\(prefix)\".")
        case 1: return candidates[0]
        default:
            var text = "\"\(prefix)\" could be any of \(candidates.count) sessions; give more of its characters:"
            for candidate in candidates.prefix(namedCandidates) { text += "\n  \(candidate)" }
            if candidates.count > namedCandidates { text += "\n  … and \(candidates.count - namedCandidates) more" }
            throw CommandFailure(.unfit, text)
        }
    }
}
