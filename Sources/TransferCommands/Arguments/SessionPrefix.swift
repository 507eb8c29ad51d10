import TransferKit

/// Finds the session that the first characters of an ID stand for.
enum SessionPrefix {
    private static let namedCandidates = 10

    static func resolve(_ prefix: String, among known: [SessionID]) throws(CommandFailure) -> SessionID {
        if let whole = SessionID(prefix), known.contains(whole) { return whole }
        let wanted = prefix.lowercased()
        let candidates = wanted.isEmpty ? [] : known.filter { $0.description.hasPrefix(wanted) }
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
