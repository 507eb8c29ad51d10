import ArgumentParser
import TransportSupport

/// Suggests similar options for an unknown option. The parser's own suggestions include dissimilar options, such as `--store` for `--token`.
enum OptionWords {
    /// Option names of other programs, with the corresponding names of this program.
    private static let synonyms = ["concurrency": "max-sessions", "jobs": "max-sessions"]

    /// Replaces the suggestion in `text`, an error message of the parser.
    static func correctingSuggestion(in text: String, for arguments: [String]) -> String {
        text.replacing(#/Unknown option '--([^']+)'\.?(?: Did you mean '[^']*'\?)?/#) { match in
            let near = suggestions(for: String(match.1), among: options(of: arguments)).map { "'--\($0)'" }
            let advice = near.isEmpty ? "" : " Did you mean \(near.joined(separator: " or "))?"
            return "Unknown option '--\(match.1)'.\(advice)"
        }
    }

    private static func suggestions(for word: String, among options: [String]) -> [String] {
        if let other = synonyms[word], options.contains(other) { return [other] }
        return options.nearest(to: word)
    }

    /// The option names, without dashes, in the help of the command that the arguments name.
    private static func options(of arguments: [String]) -> [String] {
        var command: any ParsableCommand.Type = RootCommand.self
        for word in arguments {
            guard let next = command.configuration.subcommands.first(where: { $0.configuration.commandName == word }) else { break }
            command = next
        }
        let lines = RootCommand.helpMessage(for: command).split(separator: "\n").map { $0.drop { $0 == " " } }
        let names = lines.filter { $0.hasPrefix("-") }.compactMap { $0.firstMatch(of: #/--([a-z][a-z-]*)/#).map { String($0.1) } }
        return Set(names).sorted()
    }
}
