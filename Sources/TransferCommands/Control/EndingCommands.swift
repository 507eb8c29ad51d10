import ArgumentParser
import TransferControl
import TransferKit

struct CancelCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancels sessions, which stay in the list.",
        discussion: """
            Unfinished uploads stay on the server, and part files on this machine, so that "transferq retry" resumes them. \(aboutGroups)

            Example: transferq cancel 3f2a --discard
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments
    @OptionGroup var confirming: ConfirmationOptions

    @Flag(help: "Also remove unfinished content, here and remotely.")
    var discard = false

    @Flag(help: .hidden)
    var keepPartial = false

    var confirmation: ConfirmationOptions? { confirming }
    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .cancel(discarding: discard) }

    func validate() throws {
        if discard, keepPartial { throw ValidationError("--discard and --keep-partial can't be used together.") }
    }
}

struct RetryCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Retries failed and cancelled sessions.",
        discussion: """
            Completed files are not transferred again. \(aboutGroups)

            Example: transferq retry --failed
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .retry }
    var startsSessions: Bool { true }
}

struct RemoveCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes sessions in any state from the queue.",
        discussion: """
            Source files and completed files at the destination stay. Up to 5,000 sessions are removed together: if one of them can't be \
            removed, none is. Prints the IDs of the removed sessions.

            Example: transferq remove --account studio --failed --cancelled
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments
    @OptionGroup var confirming: ConfirmationOptions

    var confirmation: ConfirmationOptions? { confirming }
    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .remove() }
}
