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
        logger.logLevel =
            switch verbosity {
            case 0: .warning
            case 1: .info
            default: .debug
            }
        return logger
    }
}
