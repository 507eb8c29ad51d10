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
        var table = Table([("NAME", .left), ("STATE", .left), ("SESSIONS", .right), ("ENDPOINTS", .left)])
        for status in accounts {
            table.append([
                status.account.name, status.blockingError != nil ? "blocked" : status.isUnavailable ? "unavailable" : "ready",
                "\(status.sessions)",
                status.account.endpoints.map(\.displayAddress).joined(separator: " "),
            ])
        }
        await output.write(table.text)
    }
}
