import ArgumentParser
import TransferControl
import TransferKit

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the sessions in queue order.",
        discussion: """
            Drafts are not in the queue. To list them: transferq list --state draft

            Example: transferq list --failed --tag night --limit 10
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        help: "List only sessions in this state; repeatable: \(Self.stateNames).",
        completion: .list(SessionState.allCases.map(\.rawValue)))
    var state: [String] = []

    @Option(help: "List only sessions of this account.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String?

    @Option(help: "List only sessions with this tag.", completion: Candidates.tags, transform: TextArgument.text)
    var tag: String?

    @Flag(help: "List only failed sessions, like --state failed.")
    var failed = false

    @Flag(help: "List only completed sessions, like --state completed.")
    var completed = false

    @Option(parsing: .unconditional, help: ArgumentHelp("List at most the given number of sessions.", valueName: "number"))
    var limit: Int?

    /// The former name of `limit`.
    @Option(parsing: .unconditional, help: .hidden)
    var max: Int?

    private static var stateNames: String { SessionState.allCases.map(\.rawValue).joined(separator: ", ") }

    func validate() throws {
        _ = try states()
        if limit != nil, max != nil { throw ValidationError("--limit and --max can't be used together.") }
        for (option, count) in [("--limit", limit), ("--max", max)] {
            if let count, count < 0 { throw ValidationError("\(option) must be at least 0, not \(count).") }
        }
    }

    /// Returns the number of sessions in quarantine; 0 if it is unknown, for example because the owner is an older version.
    private static func quarantinedCount(_ queue: some ControllableQueue) async -> Int {
        (try? await queue.quarantinedCount()) ?? 0
    }

    func run() async throws {
        let states = try states()
        let limit = limit ?? max
        let isFiltered = !states.isEmpty || account != nil || tag != nil
        let (output, terminal) = (CommandContext.current.output, CommandContext.current.terminal)
        var hasPrinted = false
        let (found, table, quarantined) = try await common.withQueue(isRepeatable: !hasPrinted) { queue in
            var table = Table([
                ("INDEX", .right), ("ID", .left), ("STATE", .left), ("PROGRESS", .right), ("SIZE", .right), ("NAME", .left),
                ("ACCOUNT", .left), ("REASON", .left),
            ])
            if let account, try await queue.account(account) == nil {
                throw CommandFailure.unknownAccount(account)
            }
            guard limit != 0 else { return (0, table, await Self.quarantinedCount(queue)) }
            var found = 0
            var lines = ""
            func list(_ session: SessionStatus) async -> Bool {
                guard states.isEmpty || states.contains(session.state), account == nil || session.account == account,
                    tag.map(session.tags.contains) ?? true
                else { return true }
                found += 1
                if common.json {
                    lines += JSONValue(session).text + "\n"
                    if lines.utf8.count > 1 << 16 {
                        hasPrinted = true
                        await output.write(lines)
                        lines = ""
                    }
                } else {
                    table.append(SessionDescription.row(session))
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
            await output.write(table.text)
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
        return Set(named + (failed ? [.failed] : []) + (completed ? [.completed] : []))
    }
}
