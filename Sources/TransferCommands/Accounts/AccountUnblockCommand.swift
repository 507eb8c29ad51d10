import ArgumentParser
import TransferControl
import TransferKit
import TransferOutput

struct AccountUnblockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unblock", abstract: "Unblocks an account, so that its sessions can run.",
        discussion: "Example: transferq account unblock studio")

    @OptionGroup var common: CommonOptions

    @Argument(help: "The account's name.", completion: Candidates.accounts, transform: TextArgument.text)
    var name: String

    func run() async throws {
        let status = try await common.withQueue { queue in
            _ = try await queue.existingAccount(name)
            try await queue.unblockAccount(name)
            return try await queue.account(name)
        }
        if common.json, let status { await CommandContext.current.output.write(JSONValue(status)) }
    }
}
