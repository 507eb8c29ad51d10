import ArgumentParser
import TransportSupport

/// Rejects unknown commands. Runs before the parser.
///
/// The parser would read an unknown command as an argument, or print the general help.
enum CommandWords {
    /// The former names of commands, which help and completion don't show.
    private static let formerNames = ["stop": "yield", "update": "set"]

    /// Replaces the former name of a command at the beginning of the arguments with its present name.
    static func replacingFormerName(in arguments: [String]) -> [String] {
        let position = arguments.prefix { $0 == "help" }.count
        guard position < arguments.count, let name = formerNames[arguments[position]] else { return arguments }
        var arguments = arguments
        arguments[position] = name
        return arguments
    }

    /// Checks the command names at the beginning of the arguments.
    ///
    /// - Throws: A `CommandFailure` for an unknown or missing command.
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

    private static func unknown(_ word: String, after path: String, of names: [String]) -> CommandFailure {
        let near = names.nearest(to: word).map { "\"transferq \(path)\($0)\"" }
        let advice =
            near.isEmpty ? "The commands are \(names.joined(separator: ", "))." : "Did you mean \(near.joined(separator: " or "))?"
        let help = (["transferq help"] + path.split(separator: " ").map(String.init)).joined(separator: " ")
        return CommandFailure(.usage, "There is no command \"\(path)\(word)\". \(advice) See: \(help)")
    }
}
