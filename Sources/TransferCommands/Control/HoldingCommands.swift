import ArgumentParser
import TransferControl
import TransferKit

struct PauseCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Pauses running sessions, which keep their slots, and prints their IDs.",
        discussion: """
            "resume" continues them. Waiting sessions are held instead; "release" continues those. \(aboutGroups)

            Example: transferq pause 3f2a
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .pause }
}

struct ResumeCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Resumes paused sessions, and prints their IDs.",
        discussion: """
            \(aboutGroups)

            Example: transferq resume 3f2a
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .resume }
}

struct HoldCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "hold", abstract: "Sets sessions aside until they are released, and prints their IDs.",
        discussion: """
            They keep their index and give up their slots. \(aboutGroups)

            Example: transferq hold --account studio
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .hold }
}

struct ReleaseCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "release", abstract: "Releases held sessions, which wait for their turn again, and prints their IDs.",
        discussion: """
            \(aboutGroups)

            Example: transferq release --account studio
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .release }
}

struct YieldCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "yield", abstract: "Interrupts running sessions to let others start first, and prints their IDs.",
        discussion: """
            They resume automatically after another session has started, or after five seconds. To stop the whole queue: transferq queue \
            stop. \(aboutGroups)

            Example: transferq yield 3f2a
            """,
        aliases: ["stop"])

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .yield }
}
