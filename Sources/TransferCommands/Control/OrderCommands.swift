import ArgumentParser
import TransferControl
import TransferKit

struct NowCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "now", abstract: "Runs sessions before all others, and prints their IDs.",
        discussion: """
            Ignores holds, start times, dependencies and retry delays. If no slot is free, the queue interrupts another session, which resumes \
            when the given session releases the slot. The command does not start the queue. If the queue is not running, the given sessions start \
            first in the next run. \(aboutGroups)

            Example: transferq now 3f2a
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .run() }
}

struct NextCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "next", abstract: "Makes waiting sessions the next to start, and prints their IDs.",
        discussion: """
            No session is interrupted. \(aboutGroups)

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
            Indices count from 0. The first session gets the index, and the others follow in their order. No session is interrupted.

            Example: transferq move 3f2a 0
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var filters: SessionFilters

    @Option(help: "Select the sessions with this tag.", completion: Candidates.tags, transform: TextArgument.text)
    var tag: String?

    @Argument(
        help: ArgumentHelp(
            "\(SessionPrefix.manyHelp), unless an option selects the sessions; then the new index.", valueName: "id> ... <index"),
        completion: Candidates.sessions)
    var words: [String]

    var selection: SessionSelection { SessionSelection(ids: words.dropLast(), filters: filters, tag: tag) }

    var operation: SessionOperation {
        get throws {
            guard let index = words.last.flatMap({ Int($0) }), index >= 0 else {
                throw ValidationError("The last argument of move is the new index, a number of at least 0.")
            }
            return .move(to: .index(index))
        }
    }

    func validate() throws {
        _ = try operation
        try selection.validate()
    }
}
