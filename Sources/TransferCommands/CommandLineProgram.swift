import ArgumentParser
import Foundation
import Logging
import SystemPackage
import TransferControl
import TransferCore
package import TransferKit
import TransferOutput

/// The program `transferq`.
public struct CommandLineProgram: Sendable {
    private var context: CommandContext

    /// Runs the command in this process's arguments, and exits with the command's status. An executable's `main` needs no other call.
    ///
    /// Call this method before anything else. First, the method opens closed standard streams, raises the limit on open files, limits the
    /// memory that the C library keeps, and restarts the process once if crash reports could contain secrets. Then it lets interactive programs
    /// run first while files are transferred, and sets up logging.
    ///
    /// - Parameter transports: The transports that endpoints can use.
    public static func main(transports: RegisteredTransports = .builtIn) async -> Never {
        await main(transports: transports, arguments: ProcessArguments.current) { program, arguments in
            if FleetProgram.isNeeded(for: arguments) { return await program.failure(FleetProgram.replaceProcess(arguments)) }
            return await program.run(arguments)
        }
    }

    /// Prepares this process like ``main(transports:)``, and exits with the status that the body returns.
    ///
    /// - Parameters:
    ///   - transports: The transports that endpoints can use.
    ///   - arguments: The arguments after the program's name, encoded by ``ProcessArguments``.
    ///   - body: Runs the command with the program and these arguments, and returns the exit status.
    package static func main(
        transports: RegisteredTransports = .builtIn, arguments: [String], _ body: (CommandLineProgram, [String]) async -> Int32
    ) async -> Never {
        StandardStreams.fillGaps()
        DescriptorLimit.raise()
        HeapMemory.shareArenas()
        CrashReports.excludeSecrets()
        SchedulingPolicy.yieldToOthers()
        let program = CommandLineProgram(transports: transports)
        program.bootstrapLogging(for: arguments)
        exit(await body(program, arguments))
    }

    /// Runs one command on a queue.
    ///
    /// - Parameters:
    ///   - arguments: The arguments after the program's name, encoded by ``ProcessArguments``.
    ///   - queue: The queue; nil for the queue in the storage folder.
    /// - Returns: The exit status.
    package func run(_ arguments: [String], on queue: (any ControllableQueue)?) async -> Int32 {
        var program = self
        program.context.queue = queue
        return await program.run(arguments)
    }

    /// Prints an error that ended the program before it could run a command.
    ///
    /// - Returns: The exit status.
    package func failure(_ error: any Error) async -> Int32 {
        let (status, message) = Self.explanation(of: error)
        let result = await fail(message, status).rawValue
        await context.terminal.flush()
        return result
    }

    private init(transports: RegisteredTransports) {
        context = CommandContext(transports: transports, output: OutputWriter(.standardOutput), terminal: Terminal(.standardError))
    }

    /// Sets up logging for code that has no logger, such as a transport that checks an endpoint. Logs warnings and errors, and more with
    /// `-v`.
    private func bootstrapLogging(for arguments: [String]) {
        let (level, terminal) = (CommonOptions.logLevel(of: arguments), context.terminal)
        LoggingSystem.bootstrap { _ in
            var handler = TerminalLogHandler(terminal: terminal)
            handler.logLevel = level
            return handler
        }
    }

    private func run(_ arguments: [String]) async -> Int32 {
        var status = await CommandContext.$current.withValue(context) { await statusOfRun(arguments) }
        if let failure = context.output.failure {
            // A command whose output is lost has not succeeded.
            let outputStatus = await fail("Cannot write the output: \(failure).", .incomplete)
            if status == .done { status = outputStatus }
        }
        await context.terminal.flush()
        return status.rawValue
    }

    private func statusOfRun(_ arguments: [String]) async -> ExitStatus {
        do {
            var command = try await Self.command(for: arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return .done
        } catch let status as ExitStatus {
            return status
        } catch let error where error is CommandFailure || error is QueueError || error is TransferError {
            let (status, message) = Self.explanation(of: error)
            return await fail(message, status)
        } catch {
            return await handle(parserError: error, of: arguments)
        }
    }

    private static func command(for arguments: [String]) async throws -> any ParsableCommand {
        let arguments = CommandWords.replacingFormerName(in: CommonOptions.movingAfterCommand(arguments))
        if !isCompletionRequest(arguments) {
            try CommandWords.check(arguments)
            try ShortOptions.check(arguments)
            try CommandWords.checkDirection(arguments)
            try CommandWords.checkRepetition(arguments)
        }
        return try await RootCommand.asyncParseAsRoot(arguments)
    }

    /// Prevents other processes of the same user from reading the secrets in the memory of this process.
    package static func protectMemory() { ProcessMemoryProtection.enable() }

    /// Moves common options from before the command to after the command, so that the returned arguments begin with the command.
    package static func beginningWithCommand(_ arguments: [String]) -> [String] { CommonOptions.movingAfterCommand(arguments) }

    /// Returns the error message for invalid arguments; nil if they are valid. Does not run the command.
    package static func usageError(in arguments: [String]) async -> String? {
        do {
            _ = try await command(for: arguments)
            return nil
        } catch let failure as CommandFailure {
            return failure.message
        } catch {
            return OptionWords.correctingSuggestion(in: RootCommand.message(for: error), for: arguments)
        }
    }

    /// Whether a shell requests completions for an unfinished command.
    private static func isCompletionRequest(_ arguments: [String]) -> Bool { arguments.first?.hasPrefix("---") ?? false }

    /// Returns the exit status and the message for an error that does not come from the parser.
    static func explanation(of error: any Error) -> (status: ExitStatus, message: String) {
        switch error {
        case let failure as CommandFailure: (failure.status, failure.message)
        case let error as QueueError: (ExitStatus(error.code), error.message + advice(for: error))
        case let error as TransferError:
            (.usage, [error.message, Troubleshooting.reference(for: error)].compactMap(\.self).joined(separator: " "))
        default: (.storage, "\(error)")
        }
    }

    private static func advice(for error: QueueError) -> String {
        switch error.code {
        case .noSuchAccount: " To list accounts: transferq account list"
        case .accountInUse: " With --cascade, the command also removes the sessions."
        // A message without a full stop already ends with a command.
        case .invalidTransition where !error.message.hasSuffix("."): ""
        default: Troubleshooting.reference(for: error.code).map { " \($0)" } ?? ""
        }
    }

    private func fail(_ message: String, _ status: ExitStatus) async -> ExitStatus {
        let message = ProcessArguments.shown(message)
        // Names in the message may contain control characters. Line breaks stay, because they separate several errors.
        let lines = message.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).withoutControlCharacters }
        await context.terminal.write("transferq: " + lines.joined(separator: "\n"))
        return status
    }

    /// The text of `--version`: a line for the program, one for the libraries of each transport, and one for SQLite.
    private var versions: String {
        var lines = [RootCommand.configuration.version]
        for libraries in context.transports.all.map({ $0.libraries.joined(separator: " ") }) where !libraries.isEmpty {
            // tus and plain HTTP use the same libraries.
            if !lines.contains(libraries) { lines.append(libraries) }
        }
        return (lines + ["SQLite/\(StoreHealth.sqliteLibraryVersion)"]).joined(separator: "\n")
    }

    /// Prints a parser error. The parser also throws an error to print the help or the version; the exit status is then 0.
    private func handle(parserError error: any Error, of arguments: [String]) async -> ExitStatus {
        let isAboutCompletion = arguments.contains { $0.hasPrefix("--generate-completion-script") }
        var text = isAboutCompletion ? CompletionRootCommand.fullMessage(for: error) : RootCommand.fullMessage(for: error)
        switch RootCommand.exitCode(for: error) {
        case .success:
            await context.output.write((text == RootCommand.configuration.version ? versions : text) + "\n")
            return .done
        case .validationFailure:
            let prefix = "Error: "
            if text.hasPrefix(prefix) { text.removeFirst(prefix.count) }
            return await fail(OptionWords.correctingSuggestion(in: text, for: arguments), .usage)
        default:
            return await fail("\(error)", .storage)
        }
    }
}
