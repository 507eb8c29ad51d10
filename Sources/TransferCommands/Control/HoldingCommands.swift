import ArgumentParser
import TransferControl

struct PauseCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Interrupts running sessions, with their slots kept, and prints their IDs.",
        discussion: """
            They go on with "resume". Waiting sessions are held instead, and go on with "release". \(aboutGroups)

            Example: transferq pause 3f2a
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .pause }
}

struct ResumeCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Lets paused sessions go on, and prints their IDs.",
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
            They keep their index and give their slots up. \(aboutGroups)

            Example: transferq hold --account studio
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .hold }
}

struct ReleaseCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "release", abstract: "Lets held sessions wait for their turn again, and prints their IDs.",
        discussion: """
            \(aboutGroups)

            Example: transferq release --account studio
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .release }
}

struct StopCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Lets other sessions go before these once, and prints their IDs.",
        discussion: """
            They go on by themselves once another one has started, or after five seconds. To stop the whole queue: transferq queue stop. \
            \(aboutGroups)

            Example: transferq stop 3f2a
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .stop }
}
