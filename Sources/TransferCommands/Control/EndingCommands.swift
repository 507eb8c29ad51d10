import ArgumentParser
import TransferControl

struct CancelCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Ends sessions, which stay in the list, and prints their IDs.",
        discussion: """
            What is incomplete at the server is removed there, as soon as the queue runs and the server can be reached. \(aboutGroups)

            Example: transferq cancel 3f2a --keep-partial
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    @Flag(help: "Leave what is incomplete at the server, so that a retry goes on from there.")
    var keepPartial = false

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .cancel(keepsPartial: keepPartial) }
}

struct RetryCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Lets failed and cancelled sessions wait again, for what is not done, and prints their IDs.",
        discussion: """
            \(aboutGroups)

            Example: transferq retry --failed
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .retry }
}

struct RemoveCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes sessions from the queue, whatever their state, and prints their IDs.",
        discussion: """
            Local files and what arrived at the other end are never touched. All are removed or none.

            Example: transferq remove --account studio --failed
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .remove() }
}
