import ArgumentParser

/// The words of a command line that name a command, looked at before the parser reads them: it would take an unknown one for an argument, and
/// help on an unknown command for help on all.
enum CommandWords {
    /// - Throws: A `CommandFailure` for words that name no command, with those that are named alike.
    static func check(_ arguments: [String]) throws(CommandFailure) {
        if let first = arguments.first, CommonOptions.isOne(first) {
            throw CommandFailure(.usage, "\(first) is for a command, and none is given. See: transferq help")
        }
        var words = arguments[...]
        // Also help on help.
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
            near.isEmpty ? "There are \(names.joined(separator: ", "))." : "The nearest is \(near.joined(separator: " or "))."
        let help = (["transferq help"] + path.split(separator: " ").map(String.init)).joined(separator: " ")
        return CommandFailure(.usage, "There is no command \"\(path)\(word)\". \(advice) See: \(help)")
    }

    /// How many characters have to be inserted, removed or replaced, or changed with the next one, to make one word of another (the optimal string
    /// alignment distance).
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
