import ArgumentParser
import TransferControl
import TransferKit

struct EnqueueCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "enqueue", abstract: "Adds drafts to the queue, and prints their IDs.",
        discussion: """
            "transferq add --draft" saves a draft, "transferq list --state draft" lists the drafts, "transferq set" changes them, and "transferq \
            remove" removes them. Several drafts are added next to each other, in the order in which they were saved.

            Example: transferq enqueue 3f2a --next
            """)

    @OptionGroup var common: CommonOptions

    @Argument(
        help: ArgumentHelp("The IDs of drafts, at least four characters of each.", valueName: "id"),
        completion: Candidates.sessions)
    var ids: [String] = []

    @Flag(help: "Add all drafts.")
    var all = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The queue index of the first session (default: the end of the queue).", valueName: "index"))
    var at: Int?

    @Flag(help: "Start before all other waiting sessions.")
    var next = false

    @Flag(help: "Run before all other sessions. If no slot is free, interrupt another session.")
    var now = false

    @Flag(help: "Hold the session until \"transferq release\".")
    var hold = false

    var selection: SessionSelection { SessionSelection(drafts: ids, all: all) }

    var operation: SessionOperation { .enqueue(to: at.map { .index($0) } ?? .end, isHeld: hold) }

    func didChange(_ sessions: [SessionID], in queue: any ControllableQueue) async throws {
        guard !sessions.isEmpty else { return }
        if next { try await queue.apply(.runNext, to: SessionGroup.sessions(sessions)) }
        if now { try await queue.apply(.run(), to: SessionGroup.sessions(sessions)) }
    }

    func validate() throws {
        if let at, at < 0 { throw ValidationError("--at must be at least 0, not \(at).") }
        let given = [("--at", at != nil), ("--next", next), ("--now", now)].filter(\.1).map(\.0)
        guard given.count < 2 else { throw ValidationError("\(given.joined(separator: " and ")) can't be used together.") }
        if hold, next || now { throw ValidationError("--hold and \(given[0]) can't be used together.") }
        guard all == ids.isEmpty else { throw ValidationError("Select the drafts by their IDs, or all drafts by --all.") }
    }
}
