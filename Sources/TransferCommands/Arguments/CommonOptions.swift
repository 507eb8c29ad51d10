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

extension CommonOptions {
    /// Lets these options stand before the command too, as in `transferq --store DIR list`: moves them behind it, where the parser wants them.
    static func movingBehindCommand(_ arguments: [String]) -> [String] {
        var rest = arguments[...]
        var leading: [String] = []
        while let option = rest.first {
            if option == "--store", rest.count > 1 {
                leading += rest.prefix(2)
                rest = rest.dropFirst(2)
            } else if ["--json", "--verbose"].contains(option) || option.hasPrefix("--store=") || option.wholeMatch(of: /-v+/) != nil {
                leading.append(option)
                rest = rest.dropFirst()
            } else {
                break
            }
        }
        let terminator = rest.firstIndex(of: "--") ?? rest.endIndex
        return rest[..<terminator] + leading + rest[terminator...]
    }
}
