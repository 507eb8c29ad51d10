import ArgumentParser
import Foundation
import Logging
public import SystemPackage
import TransferCore
import TransferKit

/// The program `transferq` as a value: what its `main` runs, and what a test can run in its own process.
public struct CommandLineProgram: Sendable {
    private let context: CommandContext

    /// Makes the program.
    ///
    /// - Parameters:
    ///   - transports: What endpoints can be made of, and sessions sent with.
    ///   - output: Where results go.
    ///   - diagnostics: Where diagnostics and the progress for people go.
    public init(
        transports: RegisteredTransports = .builtIn, output: FileDescriptor = .standardOutput,
        diagnostics: FileDescriptor = .standardError
    ) {
        context = CommandContext(
            transports: transports, output: OutputWriter(output), terminal: Terminal(diagnostics))
    }

    /// Lets those who were handed no logger, such as a transport that checks an endpoint, log as the command itself does: warnings, and more with `-v`.
    ///
    /// Called by the program's `main`, once in a process, before ``run(_:)``.
    ///
    /// - Parameter arguments: Those of the command, as for ``run(_:)``.
    public func bootstrapLogging(for arguments: [String]) {
        let (level, terminal) = (CommonOptions.logLevel(of: arguments), context.terminal)
        LoggingSystem.bootstrap { _ in
            var handler = TerminalLogHandler(terminal: terminal)
            handler.logLevel = level
            return handler
        }
    }

    /// Runs one command to its end.
    ///
    /// - Parameter arguments: What follows the program's name; bytes that are not UTF-8 as ``ProcessArguments`` writes them.
    /// - Returns: The exit status: 0 done, 1 some transfers failed, or the output can't be written, 2 usage, 3 the store can't be opened, 4 no such thing or an unfitting
    ///   state, 130 interrupted.
    public func run(_ arguments: [String]) async -> Int32 {
        var status = await CommandContext.$current.withValue(context) { await statusOfRun(arguments) }
        if let failure = context.output.failure {
            // What was asked for may be done all the same; that nobody got to know is no success.
            let told = await refuse("The output can't be written: \(failure).", .incomplete)
            if status == .done { status = told }
        }
        await context.terminal.flush()
        return status.rawValue
    }

    private func statusOfRun(_ arguments: [String]) async -> ExitStatus {
        do {
            let arguments = CommonOptions.movingBehindCommand(arguments)
            if !Self.isForShell(arguments) {
                try CommandWords.check(arguments)
                try ShortOptions.check(arguments)
            }
            var command = try await RootCommand.asyncParseAsRoot(arguments)
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
            return await refuse(message, status)
        } catch {
            return await answer(parserError: error, isAboutCompletion: arguments.contains { $0.hasPrefix("--generate-completion-script") })
        }
    }

    /// Whether a shell asks how to complete a command, with words that are not finished.
    private static func isForShell(_ arguments: [String]) -> Bool { arguments.first?.hasPrefix("---") ?? false }

    /// How the program ends with an error that is not the parser's, and what it says.
    static func explanation(of error: any Error) -> (status: ExitStatus, message: String) {
        switch error {
        case let failure as CommandFailure: (failure.status, failure.message)
        case let error as QueueError: (ExitStatus(error.code), error.message)
        case let error as TransferError: (.usage, error.message)
        default: (.storage, "\(error)")
        }
    }

    private func refuse(_ message: String, _ status: ExitStatus) async -> ExitStatus {
        let message = ProcessArguments.shown(message)
        // What is wrong may be a name. Lines stay lines: several things may be.
        let lines = message.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).withoutControlCharacters }
        await context.terminal.write("transferq: " + lines.joined(separator: "\n"))
        return status
    }

    /// The parser's own errors include the requests for help and for the version, which are none.
    private func answer(parserError error: any Error, isAboutCompletion: Bool) async -> ExitStatus {
        let text = isAboutCompletion ? CompletedCommand.fullMessage(for: error) : RootCommand.fullMessage(for: error)
        switch RootCommand.exitCode(for: error) {
        case .success:
            await context.output.write(text + "\n")
            return .done
        case .validationFailure:
            let prefix = "Error: "
            return await refuse(text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text, .usage)
        default:
            return await refuse("\(error)", .storage)
        }
    }
}
