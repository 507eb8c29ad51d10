import ArgumentParser
import TransferControl
import TransferKit

struct AccountRetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Tries an account's endpoints again now, instead of waiting.",
        discussion: """
            For a server that is back: sessions that wait for its endpoints start without the rest of the delay, also if the server asked to be \
            left alone. A blocked account stays blocked; see: transferq account unblock

            Example: transferq account retry studio
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: "The account's name.", completion: Candidates.accounts, transform: TextArgument.text)
    var name: String

    func run() async throws {
        let status = try await common.withQueue { queue in
            try await queue.retryEndpoints(of: name)
            return try await queue.account(name)
        }
        if common.json, let status { await CommandContext.current.output.write(JSONValue(status)) }
    }
}
