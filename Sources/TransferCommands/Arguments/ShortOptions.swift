/// Rejects unknown options that begin with a single dash. Runs before the parser.
///
/// The parser would read a file name such as `-the` as three short options, and the `h` among them as a request for help.
enum ShortOptions {
    private static let known: Set<Character> = ["h", "v", "q", "y"]

    /// Options with a value that can look like a short option, such as `-5`. Each option's validation checks the value.
    private static let numeric: Set<String> = [
        "--at", "--chunk", "--context", "--deadline", "--give-up-after", "--jobs", "--keep-completed", "--length", "--limit", "--log-size",
        "--max", "--max-sessions", "--min-free", "--not-before", "--parallel", "--rate", "--response-timeout", "--since",
        "--stall-timeout", "--tail", "--timeout",
    ]

    private static let flags: Set<String> = [
        "--after-none", "--all", "--cancelled", "--cascade", "--clear-tags", "--completed", "--copy", "--dedupe-completed", "--discard",
        "--download",
        "--draft",
        "--dry-run", "--each", "--failed", "--follow", "--forever", "--hold", "--item-progress", "--json", "--keep-partial", "--next",
        "--no-only-unmetered", "--only-unmetered",
        "--no-wait", "--now", "--quiet", "--read-only", "--stdin", "--timing", "--verbose", "--web", "--yes",
    ]

    /// Whether the option takes the source of a secret. The user may have passed the secret instead, so messages don't repeat the value.
    private static func namesSecret(_ option: String) -> Bool {
        option.hasSuffix("-env") || option.hasSuffix("-file") || option.hasPrefix("--header")
    }

    /// Checks the arguments before `--`.
    ///
    /// - Throws: A `CommandFailure` for an unknown option. The failure's message explains how to write a path or value that begins with a dash.
    static func check(_ arguments: [String]) throws(CommandFailure) {
        var previous: String?
        for word in arguments.prefix(while: { $0 != "--" }) {
            defer { previous = word }
            guard word.hasPrefix("-"), word != "-", !word.hasPrefix("--") || word.hasPrefix("---") else { continue }
            if word.dropFirst().allSatisfy(known.contains) || word == "-help" { continue }
            let option = previous.flatMap { $0.hasPrefix("--") && !$0.contains("=") && !flags.contains($0) ? $0 : nil }
            if let option, namesSecret(option) {
                throw CommandFailure(
                    .usage,
                    "The word after \(option) begins with a dash. If it is the value of \(option), write it after \(option)=.")
            }
            let isNumber = word.wholeMatch(of: /-[0-9.]+[A-Za-z]?/) != nil
            if isNumber, let option, numeric.contains(option) { continue }
            var text = isNumber ? "Numbers can't be negative here, and there is no option \"\(word)\"." : "There is no option \"\(word)\"."
            text += " For a file with this name, write ./\(word), or put it after --."
            if let option { text += " If it is the value of \(option), write \(option)=\(word)." }
            throw CommandFailure(.usage, text)
        }
    }
}
