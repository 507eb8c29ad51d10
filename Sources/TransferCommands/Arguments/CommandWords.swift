import ArgumentParser

/// Checks the command names on a command line before the parser reads them. The parser would read an unknown one as an argument, and print the
/// general help for an unknown command.
enum CommandWords {
    /// - Throws: A `CommandFailure` for an unknown command, with the commands of similar names.
    static func check(_ arguments: [String]) throws(CommandFailure) {
        if let first = arguments.first, CommonOptions.isCommonOption(first) {
            throw CommandFailure(.usage, "\(first) needs a command. See: transferq help")
        }
        var words = arguments[...]
        // Skips also "help help".
        while words.first == "help" { words = words.dropFirst() }
        var path = ""
        var commands = RootCommand.configuration.subcommands
        while !commands.isEmpty, let word = words.first, !word.hasPrefix("-") {
            guard let command = commands.first(where: { $0.configuration.commandName == word }) else {
                throw unknown(word, after: path, of: commands.compactMap { $0.configuration.commandName })
            }
            path += word + " "
            commands = command.configuration.subcommands
            words = words.dropFirst()
        }
    }

    private static func unknown(_ word: String, after path: String, of names: [String]) -> CommandFailure {
        let distances = names.map { (name: $0, distance: distance($0, word)) }
        let nearest = distances.map(\.distance).min() ?? .max
        let isNear = nearest <= max(1, word.count / 2)
        let near = isNear ? distances.filter { $0.distance == nearest }.map { "\"transferq \(path)\($0.name)\"" } : []
        let advice =
            near.isEmpty ? "The commands are \(names.joined(separator: ", "))." : "Did you mean \(near.joined(separator: " or "))?"
        let help = (["transferq help"] + path.split(separator: " ").map(String.init)).joined(separator: " ")
        return CommandFailure(.usage, "There is no command \"\(path)\(word)\". \(advice) See: \(help)")
    }

    /// The optimal string alignment distance: the number of insertions, deletions, replacements and swaps of neighbors that turn one word into the
    /// other.
    static func distance(_ first: String, _ second: String) -> Int {
        let (first, second) = (Array(first), Array(second))
        var before: [Int] = []
        var last = Array(0...second.count)
        for row in first.indices {
            var line = [row + 1]
            for column in second.indices {
                var best = min(line[column] + 1, last[column + 1] + 1, last[column] + (first[row] == second[column] ? 0 : 1))
                if row > 0, column > 0, first[row] == second[column - 1], first[row - 1] == second[column] {
                    best = min(best, before[column - 1] + 1)
                }
                line.append(best)
            }
            (before, last) = (last, line)
        }
        return last[second.count]
    }
}
