import ArgumentParser
import TransferControl
import TransferKit

struct NowCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "now", abstract: "Runs sessions before all others, whatever they wait for, and prints their IDs.",
        discussion: """
            Where no slot is free, another session makes room and comes back when these are done. A queue that does not run is not started: \
            they are the first of the next run then. \(aboutGroups)

            Example: transferq now 3f2a
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .run() }
}

struct NextCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "next", abstract: "Lets waiting sessions be the next that start, and prints their IDs.",
        discussion: """
            Nothing is interrupted. \(aboutGroups)

            Example: transferq next --tag urgent
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .runNext }
}

struct MoveCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Moves sessions to an index of the queue, and prints their IDs.",
        discussion: """
            The index is the one that the first of them has afterwards, from 0; several go there together, in their order. Nothing is \
            interrupted.

            Example: transferq move 3f2a 0
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var filters: SessionFilters

    @Option(help: "The sessions with this tag.", completion: Candidates.tags, transform: TextArgument.text)
    var tag: String?

    @Argument(
        help: ArgumentHelp(
            "IDs, or the first characters of them, unless they are selected by an option; then the index.", valueName: "id> ... <index"),
        completion: Candidates.sessions)
    var words: [String]

    var selection: SessionSelection { SessionSelection(ids: words.dropLast(), filters: filters, tag: tag) }

    var operation: SessionOperation {
        get throws {
            guard let index = words.last.flatMap({ Int($0) }), index >= 0 else {
                throw ValidationError("The last argument of move is the index to move to: a number from 0 on.")
            }
            return .move(to: .index(index))
        }
    }

    func validate() throws {
        _ = try operation
        try selection.validate()
    }
}
