import ArgumentParser
import Logging
import TransferKit
import TransferOutput

/// The options of all commands.
struct CommonOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The storage folder (default: see transferq --help).", valueName: "dir"))
    var store: PathArgument?

    @Flag(help: "Print JSON, one object per line.")
    var json = false

    @Flag(name: [.short, .customLong("verbose")], help: "Log more to standard error; twice for debugging.")
    var verbosity: Int

    @Flag(name: .shortAndLong, help: "Print no notes and no progress to standard error.")
    var quiet = false

    var logger: Logger { logger(omittingErrorsOf: .none) }

    /// A logger for a command that reports the errors of sessions itself. With `--verbose`, it logs all errors nevertheless.
    func logger(omittingErrorsOf sessions: ReportedSessions) -> Logger {
        var handler = TerminalLogHandler(terminal: CommandContext.current.terminal)
        if verbosity == 0 { handler.reportedSessions = sessions }
        var logger = Logger(label: "transferq") { [handler] _ in handler }
        logger.logLevel = Self.logLevel(verbosity: verbosity)
        return logger
    }

    /// Prints a note for a person to standard error, except with `--quiet`.
    func note(_ text: String) async {
        guard !quiet else { return }
        await CommandContext.current.terminal.write(text.withoutControlCharacters)
    }

    /// Prints a note that no process runs the queue, and how to run it.
    func noteAboutMissingOwner() async {
        await note("No process runs this queue. To run it: transferq run, or transferq agent start")
    }

    func validate() throws {
        if quiet, verbosity > 0 { throw ValidationError("--quiet and --verbose can't be used together.") }
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
    /// Returns the log level that a command's arguments request, for code that has no logger.
    static func logLevel(of arguments: [String]) -> Logger.Level {
        let verbosity = arguments.prefix { $0 != "--" }.reduce(0) { verbosity, word in
            if word == "--verbose" { return verbosity + 1 }
            return word.wholeMatch(of: /-v+/) == nil ? verbosity : verbosity + word.count - 1
        }
        return logLevel(verbosity: verbosity)
    }

    /// Whether a word is a common option.
    static func isCommonOption(_ word: String) -> Bool {
        ["--store", "--json", "--verbose", "--quiet", "-q"].contains(word) || word.hasPrefix("--store=")
            || word.wholeMatch(of: /-v+/) != nil
    }

    /// Moves common options after the command, where the parser expects them, so that `transferq --store DIR list` works.
    static func movingAfterCommand(_ arguments: [String]) -> [String] {
        var rest = arguments[...]
        var leading: [String] = []
        while let option = rest.first {
            guard isCommonOption(option) else { break }
            let words = rest.prefix(option == "--store" ? 2 : 1)
            leading += words
            rest = rest.dropFirst(words.count)
        }
        let terminator = rest.firstIndex(of: "--") ?? rest.endIndex
        return rest[..<terminator] + leading + rest[terminator...]
    }
}
