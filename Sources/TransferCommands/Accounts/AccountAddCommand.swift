import ArgumentParser
import TransferCore
import TransferKit

struct AccountAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds an account with its endpoints, in order of preference.",
        discussion: """
            Credentials are named, never given: the variable or the file is read each time that a connection needs it. The path of an \
            endpoint is the folder that remote names are relative to.
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var options: EndpointOptions
    @OptionGroup(visibility: .hidden) var later: LaterAccountOptions

    @Argument(help: "The account's name.")
    var name: String

    @Argument(help: ArgumentHelp("URLs, the preferred one first.", valueName: "endpoint"))
    var endpoints: [String]

    func run() async throws {
        let (credentials, settings) = (try options.credentials(), try options.settings())
        var account = Account(name, endpoints: [])
        for text in endpoints {
            var endpoint = try EndpointURL.endpoint(text, among: CommandContext.current.transports)
            endpoint.credentials = credentials
            endpoint.settings = settings
            account.endpoints.append(endpoint)
        }
        let added = account
        let status = try await common.withQueue { queue in
            guard await queue.account(added.name) == nil else {
                throw CommandFailure(.unfit, "There is an account named \"\(added.name)\" already.")
            }
            try await queue.save(added)
            return await queue.account(added.name)
        }
        if common.json, let status { await CommandContext.current.output.write(JSONValue(status)) }
    }
}

/// What this version of the command can't do for accounts, whatever the queue can.
struct LaterAccountOptions: ParsableArguments {
    @Option var identity: String?
    @Option var knownHosts: String?
    @Option var hostKey: String?
    @Option var maxSessions: String?
    @Option var rate: String?

    func validate() throws {
        try LaterOptions.refuse([
            ("--identity", identity != nil), ("--known-hosts", knownHosts != nil), ("--host-key", hostKey != nil),
            ("--max-sessions", maxSessions != nil), ("--rate", rate != nil),
        ])
    }
}
