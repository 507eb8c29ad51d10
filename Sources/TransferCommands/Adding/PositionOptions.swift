import ArgumentParser
import TransferControl
import TransferKit

struct PositionOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The queue index of the first session (default: last).", valueName: "index"))
    var at: Int?

    @Flag(help: "Start before all other waiting sessions.")
    var next = false

    @Flag(help: "Start now; interrupt another session if necessary.")
    var now = false

    @Flag(help: "Hold the session until transferq release.")
    var hold = false

    var isGiven: Bool { at != nil || next || now || hold }

    func validate() throws {
        if let at, at < 0 { throw ValidationError("--at must be at least 0, not \(at).") }
        let given = [("--at", at != nil), ("--next", next), ("--now", now)].filter(\.1).map(\.0)
        guard given.count < 2 else { throw ValidationError("\(given.joined(separator: " and ")) can't be used together.") }
        if hold, next || now { throw ValidationError("--hold and \(given[0]) can't be used together.") }
    }

    func start(_ sessions: [SessionID], in queue: any ControllableQueue) async throws {
        guard !sessions.isEmpty else { return }
        if next { _ = try await queue.apply(.runNext, to: SessionGroup.sessions(sessions)) }
        if now { _ = try await queue.apply(.run(), to: SessionGroup.sessions(sessions)) }
    }
}
