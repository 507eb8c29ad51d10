import ArgumentParser
import TransferControl
import TransferKit

struct AccountRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes an account that no session refers to.",
        discussion: "Example: transferq account remove studio --cascade")

    @OptionGroup var common: CommonOptions

    @Flag(help: "Remove the sessions that refer to it too.")
    var cascade = false

    @Argument(help: "The account's name.", completion: Candidates.accounts)
    var name: String

    func run() async throws {
        try await common.withQueue { try await $0.deleteAccount(name, cascades: cascade) }
        if common.json { await CommandContext.current.output.write(["name": .string(name)] as JSONValue) }
    }
}
