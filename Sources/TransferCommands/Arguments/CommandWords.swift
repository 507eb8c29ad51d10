import ArgumentParser
import TransportSupport

/// Checks command names, and options that a command does not accept or accepts only once. Runs before the parser.
///
/// For these mistakes, the parser would print a misleading error or the general help, or ignore all but the last value.
enum CommandWords {
    /// The former names of commands, which help and completion don't show.
    private static let formerNames = ["stop": "yield", "update": "set"]

    static func replacingFormerName(in arguments: [String]) -> [String] {
        let position = arguments.prefix { $0 == "help" }.count
        guard position < arguments.count, let name = formerNames[arguments[position]] else { return arguments }
        var arguments = arguments
        arguments[position] = name
        return arguments
    }

    /// Checks the command names at the beginning of the arguments.
    ///
    /// - Throws: A `CommandFailure` for an unknown command, or for options without a command.
    static func check(_ arguments: [String]) throws(CommandFailure) {
        if let first = arguments.first, CommonOptions.isCommonOption(first) {
            throw CommandFailure(.usage, "\(first) needs a command. See: transferq help")
        }
        var words = arguments[...]
        // Skips each leading "help", including the second one in "help help".
        while words.first == "help" { words = words.dropFirst() }
        var path = ""
        var commands = RootCommand.configuration.subcommands
        while !commands.isEmpty, let word = words.first, !word.hasPrefix("-") {
            guard let command = commands.first(where: { $0.configuration.commandName == word })
            else {
                throw unknown(word, after: path, of: commands.compactMap { $0.configuration.commandName })
            }
            path += word + " "
            commands = command.configuration.subcommands
            words = words.dropFirst()
        }
    }

    /// The options that only the command for the opposite direction accepts, by command, and the advice in the error message.
    private static let foreignOptions: [String: (options: Set<String>, advice: String)] = [
        "download": (
            ["--copy", "--creation-url", "--form", "--metadata", "--symlinks"], "is for uploads. Omit it, or use transferq upload."
        ),
        "upload": (["--checksum"], "is for downloads. To compare the checksums of uploads: --verify checksum"),
    ]

    /// Checks that the arguments of `upload` and `download` contain no option of the other command. The parser would suggest an option with a
    /// similar name.
    ///
    /// - Throws: A `CommandFailure` for such an option.
    static func checkDirection(_ arguments: [String]) throws(CommandFailure) {
        guard let (options, advice) = arguments.first.flatMap({ foreignOptions[$0] }) else { return }
        for word in arguments.prefix(while: { $0 != "--" }) {
            let option = String(word.prefix { $0 != "=" })
            if options.contains(option) { throw CommandFailure(.usage, "\(option) \(advice)") }
        }
    }

    /// The commands whose `--tag` gives tags to a new session.
    private static let taggingCommands: Set<String> = ["add", "download", "stream", "upload"]

    /// Checks that no option that selects sessions is repeated. The parser would use only the last value.
    ///
    /// - Throws: A `CommandFailure` for a repeated option.
    static func checkRepetition(_ arguments: [String]) throws(CommandFailure) {
        let options = arguments.prefix { $0 != "--" }.map { $0.prefix { $0 != "=" } }
        let selectors = arguments.first.map(taggingCommands.contains) == true ? ["account"] : ["account", "tag"]
        for word in selectors where options.count(where: { $0 == "--\(word)" }) > 1 {
            throw CommandFailure(
                .usage, "--\(word) selects the sessions of one \(word), so it can't be repeated. Run the command once for each \(word).")
        }
    }

    private static func unknown(_ word: String, after path: String, of names: [String]) -> CommandFailure {
        let near = names.nearest(to: word).map { "\"transferq \(path)\($0)\"" }
        let advice =
            near.isEmpty ? "The commands are \(names.joined(separator: ", "))." : "Did you mean \(near.joined(separator: " or "))?"
        let help = (["transferq help"] + path.split(separator: " ").map(String.init)).joined(separator: " ")
        return CommandFailure(.usage, "There is no command \"\(path)\(word)\". \(advice) See: \(help)")
    }
}
