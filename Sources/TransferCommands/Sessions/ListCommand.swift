import ArgumentParser
import TransferControl
import TransferKit

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the sessions in queue order.",
        discussion: "Example: transferq list --state waiting --max 10")

    @OptionGroup var common: CommonOptions

    @Option(
        help: "List only sessions in this state; repeatable: \(Self.stateNames).",
        completion: .list(SessionState.allCases.map(\.rawValue)))
    var state: [String] = []

    @Option(help: "List only sessions of this account.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("List at most the given number of sessions.", valueName: "number"))
    var max: Int?

    private static var stateNames: String { SessionState.allCases.map(\.rawValue).joined(separator: ", ") }

    func validate() throws {
        _ = try states()
        if let max, max < 0 { throw ValidationError("--max must be at least 0, not \(max).") }
    }

    /// Returns the number of sessions in quarantine; 0 if it is unknown, for example because the owner is an older version.
    private static func quarantinedCount(_ queue: some ControllableQueue) async -> Int {
        (try? await queue.quarantinedCount()) ?? 0
    }

    func run() async throws {
        let states = try states()
        let (output, terminal) = (CommandContext.current.output, CommandContext.current.terminal)
        var hasPrinted = false
        let (found, table, quarantined) = try await common.withQueue(isRepeatable: !hasPrinted) { queue in
            var table = Table([
                ("INDEX", .right), ("ID", .left), ("STATE", .left), ("PROGRESS", .right), ("SIZE", .right), ("NAME", .left),
                ("ACCOUNT", .left),
            ])
            if let account, try await queue.account(account) == nil {
                throw CommandFailure.unknownAccount(account)
            }
            guard max != 0 else { return (0, table, await Self.quarantinedCount(queue)) }
            var found = 0
            var lines = ""
            try await queue.forEachSession { session in
                guard state.isEmpty || states.contains(session.state), account == nil || session.account == account else { return true }
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
                return found != max
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
        } else if quarantined == 0 || !state.isEmpty || account != nil {
            await terminal.write(state.isEmpty && account == nil && max != 0 ? "The queue is empty." : "No session matches.")
        }
    }

    private func states() throws -> Set<SessionState> {
        Set(
            try state.map { name in
                guard let state = SessionState(rawValue: name) else {
                    throw ValidationError("There is no state \"\(name)\". The states are \(Self.stateNames).")
                }
                return state
            })
    }
}
