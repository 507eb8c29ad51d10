import ArgumentParser
import Logging
import TransferControl
import TransferKit
import TransferOutput

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

    /// Returns a logger that omits the errors of some sessions, because the command prints these errors itself. With `--verbose`, the
    /// logger omits nothing.
    func logger(omittingErrorsOf sessions: ReportedSessions) -> Logger {
        var handler = TerminalLogHandler(terminal: CommandContext.current.terminal)
        if verbosity == 0 { handler.reportedSessions = sessions }
        var logger = Logger(label: "transferq") { [handler] _ in handler }
        logger.logLevel = Self.logLevel(verbosity: verbosity)
        return logger
    }

    func note(_ text: String) async {
        guard !quiet else { return }
        await CommandContext.current.terminal.write(text.withoutControlCharacters)
    }

    /// If no waiting session can start, prints the reason and how to run the queue. The reason is that no process runs the queue, or that the
    /// queue is stopped, stopping or draining.
    ///
    /// - Parameter mode: The mode of the queue; nil if no process owns it.
    func note(aboutMode mode: QueueStatus.Mode?) async {
        guard let mode else { return await note("No process runs this queue. To run it: transferq run, or transferq agent start") }
        if let notice = mode.notice { await note(notice) }
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

    static func isCommonOption(_ word: String) -> Bool {
        ["--store", "--json", "--verbose", "--quiet", "-q"].contains(word) || word.hasPrefix("--store=")
            || word.wholeMatch(of: /-v+/) != nil
    }

    /// Moves common options that precede the command to the end of the arguments, or before `--`. The parser expects them after the
    /// command, but `transferq --store DIR list` must also work.
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

extension ControllableQueue {
    /// The mode of the queue; nil if this process has opened the queue, because no other process owns it.
    var ownedMode: QueueStatus.Mode? {
        get async throws { self is TransferQueue ? nil : try await status().mode }
    }
}

extension QueueStatus.Mode {
    /// A sentence that explains how to start a queue that has an owner but starts no sessions; nil if the queue is running.
    var notice: String? {
        self == .running ? nil : "The queue is \(rawValue), so no session starts. To start it: transferq queue start"
    }
}
