import ArgumentParser
import TransferControl
import TransferKit
import TransferOutput

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the sessions in queue order.",
        discussion: """
            Drafts are not in the queue. To list them: transferq list --state draft

            Example: transferq list --failed --tag night --limit 10
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        help: ArgumentHelp("Only sessions in this state; repeatable.", discussion: "States: \(Self.stateNames).", valueName: "state"),
        completion: .list(SessionState.allCases.map(\.rawValue)))
    var state: [String] = []

    @Option(help: "Only sessions of this account.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String?

    @Option(help: "Only sessions with this tag.", completion: Candidates.tags, transform: TextArgument.text)
    var tag: String?

    @Flag(help: "Only failed sessions, like --state failed.")
    var failed = false

    @Flag(help: "Only cancelled sessions, like --state cancelled.")
    var cancelled = false

    @Flag(help: "Only completed sessions, like --state completed.")
    var completed = false

    @Option(parsing: .unconditional, help: ArgumentHelp("The maximum number of sessions to show.", valueName: "number"))
    var limit: Int?

    /// The former name of `limit`.
    @Option(parsing: .unconditional, help: .hidden)
    var max: Int?

    /// The steps that fit the table into a narrow terminal. ``SessionDescription/row(_:isShort:)`` defines the columns.
    private static let narrowing: [Table.Narrowing] = [
        .truncate(column: 7, to: 44), .truncate(column: 5, to: 24), .truncate(column: 7, to: 32), .truncate(column: 5, to: 12),
        .omit(column: 6), .omit(column: 4), .truncate(column: 7, to: 16), .omit(column: 7), .omit(column: 0),
        .truncate(column: 5, to: 4),
    ]

    private static var stateNames: String { SessionState.allCases.map(\.rawValue).joined(separator: ", ") }

    func validate() throws {
        _ = try states()
        if limit != nil, max != nil { throw ValidationError("--limit and --max can't be used together.") }
        for (option, count) in [("--limit", limit), ("--max", max)] {
            if let count, count < 0 { throw ValidationError("\(option) must be at least 0, not \(count).") }
        }
    }

    /// Returns the number of sessions in quarantine; 0 if it is unknown, for example because the queue's owner is an older version.
    private static func quarantinedCount(_ queue: some ControllableQueue) async -> Int {
        (try? await queue.quarantinedCount()) ?? 0
    }

    func run() async throws {
        let states = try states()
        let limit = limit ?? max
        let isFiltered = !states.isEmpty || account != nil || tag != nil
        let (output, terminal) = (CommandContext.current.output, CommandContext.current.terminal)
        var hasPrinted = false
        var mode: QueueStatus.Mode?
        var hasWaitingSession = false
        var (found, table, quarantined) = try await common.withQueue(isRepeatable: !hasPrinted) { queue in
            mode = try await queue.ownedMode
            var table = Table([
                ("INDEX", .right), ("ID", .left), ("STATE", .left), ("PROGRESS", .right), ("SIZE", .right), ("NAME", .left),
                ("ACCOUNT", .left), ("REASON", .left),
            ])
            if let account { _ = try await queue.existingAccount(account) }
            guard limit != 0 else { return (0, table, await Self.quarantinedCount(queue)) }
            var found = 0
            var lines = ""
            func list(_ session: SessionStatus) async -> Bool {
                guard states.isEmpty || states.contains(session.state), account == nil || session.account == account,
                    tag.map(session.tags.contains) ?? true
                else { return true }
                found += 1
                if session.state == .waiting { hasWaitingSession = true }
                if common.json {
                    lines += JSONValue(session).text + "\n"
                    if lines.utf8.count > 1 << 16 {
                        hasPrinted = true
                        await output.write(lines)
                        lines = ""
                    }
                } else {
                    table.append(SessionDescription.row(session, isShort: output.columns != nil))
                }
                return found != limit
            }
            try await queue.forEachSession { await list($0) }
            if states.contains(.draft) {
                for draft in try await queue.sessions(in: .state(.draft)) where found != limit { _ = await list(draft) }
            }
            hasPrinted = true
            await output.write(lines)
            // Listing sessions moves unreadable sessions to quarantine, so the count comes after the listing.
            return (found, table, await Self.quarantinedCount(queue))
        }
        if let notice = QuarantineCommand.notice(quarantined) { await terminal.write("transferq: \(notice)") }
        guard !common.json else { return }
        if found > 0 {
            if let columns = output.columns { table.fit(into: columns, by: Self.narrowing) }
            await output.write(table.text)
            // A script that reads the table needs no advice.
            if hasWaitingSession, terminal.isTerminal { await common.note(aboutMode: mode) }
        } else if quarantined == 0 || isFiltered {
            await common.note(!isFiltered && limit != 0 ? "The queue is empty." : "No session matches.")
        }
    }

    private func states() throws -> Set<SessionState> {
        let named = try state.map { name in
            guard let state = SessionState(rawValue: name) else {
                throw ValidationError("There is no state \"\(name)\". The states are \(Self.stateNames).")
            }
            return state
        }
        return Set(named + (failed ? [.failed] : []) + (cancelled ? [.cancelled] : []) + (completed ? [.completed] : []))
    }
}
