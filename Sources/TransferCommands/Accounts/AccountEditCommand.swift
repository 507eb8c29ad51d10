import ArgumentParser
import TransferControl
import TransferCore
import TransferKit

struct AccountEditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit", abstract: "Changes an account; what is not given stays as it is.",
        discussion: """
            Endpoints take the place of those that it has. An endpoint that it has already keeps its credentials and settings; a new one gets \
            those of the first one of the same transport. A credential or header takes the place of the one of the same kind or name. If the account is blocked, this \
            lifts the block.

            Example: transferq account edit studio --token-file ~/.studio-token --rate 2M
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var options: EndpointOptions
    @OptionGroup var limits: AccountLimitOptions

    @Argument(help: "The account's name.", completion: Candidates.accounts, transform: TextArgument.text)
    var name: String

    @Argument(help: ArgumentHelp("URLs, the preferred one first; none to keep those that it has.", valueName: "endpoint"))
    var endpoints: [String] = []

    func run() async throws {
        let transports = CommandContext.current.transports
        let given = try endpoints.map { try EndpointURL.endpoint($0, among: transports) }
        let status = try await common.withQueue { queue in
            var (known, edited): (Account, Account)
            repeat {
                guard let account = try await queue.account(name)?.account else {
                    throw CommandFailure(.unfit, "There is no account named \"\(name)\".")
                }
                (known, edited) = (account, account)
                if !given.isEmpty { edited.endpoints = given.map { Self.completed($0, from: known.endpoints) } }
                try options.apply(to: &edited.endpoints, of: transports)
                for endpoint in edited.endpoints { try transports.validate(endpoint) }
                limits.apply(to: &edited)
                // Another command may have edited it meanwhile.
            } while try await !queue.save(edited, replacing: known)
            return try await queue.account(name)
        }
        if common.json, let status { await CommandContext.current.output.write(JSONValue(status)) }
    }

    private static func completed(_ endpoint: Endpoint, from known: [Endpoint]) -> Endpoint {
        let same = known.first { $0.address == endpoint.address && $0.transport == endpoint.transport }
        guard let model = same ?? known.first(where: { $0.transport == endpoint.transport }) else { return endpoint }
        var endpoint = endpoint
        endpoint.credentials = model.credentials
        endpoint.settings = model.settings
        return endpoint
    }
}
