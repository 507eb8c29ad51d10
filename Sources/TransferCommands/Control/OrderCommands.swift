import ArgumentParser
import TransferControl
import TransferKit

struct NowCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "now", abstract: "Runs sessions before all others.",
        discussion: """
            Ignores holds, start times, dependencies and retry delays. If no slot is free, the queue interrupts another session, which resumes later. \
            \(aboutGroups)

            Example: transferq now 3f2a
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .run() }
    var startsSessions: Bool { true }
}

struct NextCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "next", abstract: "Makes waiting sessions the next to start.",
        discussion: """
            No session is interrupted. \(aboutGroups)

            Example: transferq next --tag urgent
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .runNext }
    var startsSessions: Bool { true }
}

struct MoveCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Moves sessions to an index of the queue.",
        discussion: """
            Indices count from 0. The first session gets the index, and the others follow in their order. No session is interrupted. \
            Prints the IDs of the moved sessions.

            Example: transferq move 3f2a 0
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var filters: SessionFilters

    @Option(help: "Select the sessions with this tag.", completion: Candidates.tags, transform: TextArgument.text)
    var tag: String?

    @Argument(
        help: ArgumentHelp("Sessions, unless options select them; then the index.", valueName: "id> ... <index"),
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
