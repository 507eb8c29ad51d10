import ArgumentParser
import Foundation
import TransferKit
import TransferOutput

/// The options of commands that end or remove sessions.
struct ConfirmationOptions: ParsableArguments {
    @Flag(name: .shortAndLong, help: "Don't ask for confirmation on a terminal.")
    var yes = false

    @Flag(help: "Only print the IDs of the sessions that would change.")
    var dryRun = false

    var asks: Bool { !yes && isatty(STDIN_FILENO) == 1 && CommandContext.current.terminal.isTerminal }

    /// Asks the user for confirmation if standard input and standard error are terminals. Does nothing with `--yes`.
    ///
    /// - Parameter question: The question, without the instruction to type `yes`.
    /// - Returns: Whether the user has confirmed; false if this method did not ask.
    /// - Throws: A `CommandFailure` if the user's answer is neither `y` nor `yes`.
    @discardableResult
    func confirm(_ question: String) async throws -> Bool {
        guard asks else { return false }
        await CommandContext.current.terminal.write("\(question) Type yes to continue:".withoutControlCharacters)
        let answer = await BlockingIO.run { readLine() ?? "" }.trimmingCharacters(in: .whitespaces).lowercased()
        guard ["y", "yes"].contains(answer) else { throw CommandFailure(.incomplete, "Nothing was changed.") }
        return true
    }
}
