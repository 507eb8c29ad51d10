/// The words that begin with one dash, looked at before the parser reads them: it takes each for a row of short options, and one with an h in it
/// for a request for help, when it is a file's name.
enum ShortOptions {
    /// `-h` for help, and `-v` for more messages.
    private static let known: Set<Character> = ["h", "v"]

    /// The options that say themselves which numbers they take.
    private static let numeric: Set<String> = [
        "--at", "--chunk", "--context", "--give-up-after", "--jobs", "--max", "--max-sessions", "--not-before", "--parallel", "--rate",
        "--response-timeout",
        "--since", "--stall-timeout", "--timeout",
    ]

    /// The options that take no value.
    private static let flags: Set<String> = [
        "--all", "--cascade", "--download", "--each", "--failed", "--follow", "--forever", "--hold", "--json", "--keep-partial", "--next",
        "--no-wait", "--now", "--stdin", "--verbose",
    ]

    /// Whether a secret may stand behind an option by mistake, in place of where it is: nothing of it is repeated.
    private static func namesSecret(_ option: String) -> Bool {
        option.hasSuffix("-env") || option.hasSuffix("-file") || option.hasPrefix("--header")
    }

    /// - Throws: A `CommandFailure` for a word that is no option, with how to write what it may be meant as.
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
                    "What follows \(option) begins with a dash, as options do. As the value of \(option), write it behind \(option)=.")
            }
            let number = word.wholeMatch(of: /-[0-9.]+[A-Za-z]?/) != nil
            if number, let option, numeric.contains(option) { continue }
            var text = number ? "Numbers can't be negative here, and there is no option \"\(word)\"." : "There is no option \"\(word)\"."
            text += " To name a file like that, write ./\(word), or give it after the word --."
            if let option { text += " As the value of \(option), write \(option)=\(word)." }
            throw CommandFailure(.usage, text)
        }
    }
}
