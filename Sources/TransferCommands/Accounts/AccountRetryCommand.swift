import ArgumentParser
import TransferControl
import TransferKit
import TransferOutput

struct AccountRetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Retries unavailable endpoints immediately.",
        discussion: """
            Use this command when a server is available again. Sessions that wait for the account's endpoints start without the remaining delay, \
            even if the server asked clients to wait. A blocked account stays blocked; see: transferq account unblock

            Example: transferq account retry studio
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: "The account's name.", completion: Candidates.accounts, transform: TextArgument.text)
    var name: String

    func run() async throws {
        let status = try await common.withQueue { queue in
            _ = try await queue.existingAccount(name)
            try await queue.retryEndpoints(of: name)
            return try await queue.account(name)
        }
        if common.json, let status { await CommandContext.current.output.write(JSONValue(status)) }
    }
}
