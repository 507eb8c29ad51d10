import ArgumentParser
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

struct AccountEditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit", abstract: "Changes an account; omitted options keep their values.",
        discussion: """
            If endpoints are given, they replace all endpoints of the account. An existing endpoint keeps its credentials and settings. A new \
            endpoint copies the credentials and settings of the first endpoint with the same transport. A new credential replaces a credential of \
            the same kind, and a new header replaces a header of the same name. Editing a blocked account unblocks it.

            Example: transferq account edit studio --token-file ~/.studio-token --rate 2M
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var options: EndpointOptions
    @OptionGroup var limits: AccountLimitOptions

    @Argument(help: "The account's name.", completion: Candidates.accounts, transform: TextArgument.text)
    var name: String

    @Argument(help: ArgumentHelp("URLs in order of preference (default: unchanged).", valueName: "endpoint"))
    var endpoints: [String] = []

    func validate() throws {
        guard endpoints.isEmpty, options.isEmpty, limits.isEmpty else { return }
        throw ValidationError(
            "Nothing to change: give endpoints or options. To unblock the account: transferq account unblock \(name.shellWord)")
    }

    func run() async throws {
        let transports = CommandContext.current.transports
        let given = try endpoints.map { try EndpointURL.endpoint($0, among: transports) }
        let status = try await common.withQueue { queue in
            var (known, edited): (Account, Account)
            repeat {
                let account = try await queue.existingAccount(name).account
                (known, edited) = (account, account)
                if !given.isEmpty { edited.endpoints = given.map { Self.completed($0, from: known.endpoints) } }
                try options.apply(to: &edited.endpoints, of: transports)
                for endpoint in edited.endpoints { try transports.validate(endpoint) }
                limits.apply(to: &edited)
                // Another command may have edited the account since this command read it.
            } while try await !queue.save(edited, replacing: known)
            return try await queue.account(name)
        }
        if common.json, let status { await CommandContext.current.output.write(JSONValue(status)) }
    }

    /// Adds the credentials and settings of one of the account's endpoints to a given endpoint. Uses the account's endpoint with the same address
    /// and transport, or else the account's first endpoint with the same transport. If there is neither, returns the given endpoint unchanged.
    private static func completed(_ endpoint: Endpoint, from known: [Endpoint]) -> Endpoint {
        let same = known.first { $0.address == endpoint.address && $0.transport == endpoint.transport }
        guard let model = same ?? known.first(where: { $0.transport == endpoint.transport }) else { return endpoint }
        var endpoint = endpoint
        endpoint.credentials = model.credentials
        // Settings that the scheme of the given URL implies take precedence.
        endpoint.settings = model.settings.merging(endpoint.settings) { $1 }
        return endpoint
    }
}
