import ArgumentParser
import TransferControl
import TransferKit

struct PauseCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Pauses running sessions, which keep their slots.",
        discussion: """
            A waiting session has no slot to keep, so it becomes held. To continue paused and held sessions: transferq resume. \(aboutGroups)

            Example: transferq pause 3f2a
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .pause }
}

struct ResumeCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Resumes paused sessions and releases held ones.",
        discussion: """
            \(aboutGroups)

            Example: transferq resume 3f2a
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .resume }
    var startsSessions: Bool { true }
}

struct HoldCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "hold", abstract: "Holds sessions until they are released.",
        discussion: """
            A held session keeps its index but not its slot. \(aboutGroups)

            Example: transferq hold --account studio
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .hold }
}

struct ReleaseCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "release", abstract: "Releases held sessions, which wait for their turn.",
        discussion: """
            \(aboutGroups)

            Example: transferq release --account studio
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .release }
    var startsSessions: Bool { true }
}

struct YieldCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "yield", abstract: "Interrupts running sessions so that others can start.",
        discussion: """
            A yielded session resumes automatically after another session has started, or after five seconds. Waiting sessions have no run to \
            interrupt; their IDs are not printed. To stop the whole queue: transferq \
            queue stop. \(aboutGroups)

            Example: transferq yield 3f2a
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var arguments: SelectionArguments

    var selection: SessionSelection { arguments.selection }
    var operation: SessionOperation { .yield }
    var unchangedStates: Set<SessionState> { [.waiting] }
}
