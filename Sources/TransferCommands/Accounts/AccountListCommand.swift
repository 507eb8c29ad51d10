import ArgumentParser
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

struct AccountListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the accounts.", discussion: "Example: transferq account list --json")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let (output, terminal) = (CommandContext.current.output, CommandContext.current.terminal)
        let accounts = try await common.withQueue { try await $0.accounts() }
        if common.json {
            for account in accounts { await output.write(JSONValue(account)) }
            return
        }
        guard !accounts.isEmpty else {
            await terminal.write("There are no accounts. To add one: transferq account add NAME ENDPOINT")
            return
        }
        var table = Table([("NAME", .left), ("STATE", .left), ("SESSIONS", .right), ("ENDPOINTS", .left), ("REASON", .left)])
        for status in accounts {
            table.append([
                status.account.name, Self.state(status), "\(status.sessions)",
                status.account.endpoints.map(\.displayAddress).joined(separator: " "),
                status.blockingError?.message ?? status.unavailableEndpoints.compactMap(\.error?.message).joined(separator: " "),
            ])
        }
        await output.write(table.text)
    }

    private static func state(_ status: AccountStatus) -> String {
        if status.blockingError != nil { return "blocked" }
        guard status.isUnavailable, let next = status.unavailableEndpoints.map(\.nextAttempt).min() else { return "ready" }
        return "retries \(Figures.moment(next))"
    }
}
