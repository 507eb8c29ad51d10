import ArgumentParser
import TransferControl
import TransferKit

struct EnqueueCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "enqueue", abstract: "Adds drafts to the queue.",
        discussion: """
            "transferq upload --draft" saves a draft, "transferq list --state draft" lists the drafts, "transferq set" changes them, and "transferq \
            remove" removes them. Several drafts are added consecutively, in the order in which they were saved. Prints the IDs of the \
            added sessions.

            Example: transferq enqueue 3f2a --next
            """)

    @OptionGroup var common: CommonOptions

    @Argument(
        help: ArgumentHelp("IDs of drafts (at least 4 characters each).", valueName: "id"),
        completion: Candidates.sessions)
    var ids: [String] = []

    @Flag(help: "Add all drafts.")
    var all = false

    @OptionGroup var position: PositionOptions

    var selection: SessionSelection { SessionSelection(drafts: ids, all: all) }

    var operation: SessionOperation { .enqueue(to: position.at.map { .index($0) } ?? .end, isHeld: position.hold) }

    var startsSessions: Bool { !position.hold }

    func didChange(_ sessions: [SessionID], in queue: any ControllableQueue) async throws {
        try await position.start(sessions, in: queue)
    }

    func validate() throws {
        guard all == ids.isEmpty else { throw ValidationError("Specify either draft IDs or --all.") }
    }
}
