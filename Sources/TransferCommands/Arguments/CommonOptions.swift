import ArgumentParser
import Logging

/// What every command takes.
struct CommonOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The folder that the queue is kept in.", valueName: "dir"))
    var store: PathArgument?

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    @Flag(name: [.short, .customLong("verbose")], help: "Log more to standard error; twice for even more.")
    var verbosity: Int

    var logger: Logger {
        let terminal = CommandContext.current.terminal
        var logger = Logger(label: "transferq") { _ in TerminalLogHandler(terminal: terminal) }
        logger.logLevel = Self.logLevel(verbosity: verbosity)
        return logger
    }

    fileprivate static func logLevel(verbosity: Int) -> Logger.Level {
        switch verbosity {
        case 0: .warning
        case 1: .info
        default: .debug
        }
    }
}

extension CommonOptions {
    /// How much a command logs that has these arguments, for what is logged by those who were handed no logger.
    static func logLevel(of arguments: [String]) -> Logger.Level {
        let verbosity = arguments.prefix { $0 != "--" }.reduce(0) { verbosity, word in
            if word == "--verbose" { return verbosity + 1 }
            return word.wholeMatch(of: /-v+/) == nil ? verbosity : verbosity + word.count - 1
        }
        return logLevel(verbosity: verbosity)
    }

    /// Whether a word is one of these options.
    static func isOne(_ word: String) -> Bool {
        ["--store", "--json", "--verbose"].contains(word) || word.hasPrefix("--store=") || word.wholeMatch(of: /-v+/) != nil
    }

    /// Lets these options stand before the command too, as in `transferq --store DIR list`: moves them behind it, where the parser wants them.
    static func movingBehindCommand(_ arguments: [String]) -> [String] {
        var rest = arguments[...]
        var leading: [String] = []
        while let option = rest.first {
            guard isOne(option) else { break }
            let words = rest.prefix(option == "--store" ? 2 : 1)
            leading += words
            rest = rest.dropFirst(words.count)
        }
        let terminator = rest.firstIndex(of: "--") ?? rest.endIndex
        return rest[..<terminator] + leading + rest[terminator...]
    }
}
