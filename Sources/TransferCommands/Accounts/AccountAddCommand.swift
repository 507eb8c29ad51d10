import ArgumentParser
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

struct AccountAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds an account with its endpoints.",
        discussion: """
            The scheme of an address selects the transport: https:// for tus, rufh+https:// for the \
            IETF's resumable uploads, sftp:// for SFTP, and https+put://, https+post://, https+form:// or https+get:// \
            for plain HTTP. Pass secrets through an environment variable or a file, for example with --token-env NAME. transferq \
            reads the secret for each connection. The article "Options of transfers" explains the addresses and options.

            Example: transferq account add studio https://upload.example.com/files/ --token-env STUDIO_TOKEN
            Example: transferq account add bucket 'https+put://bucket.example.com/in/{path}?signature=…'
            Example: transferq account add archive sftp://me@files.example.com/in/ --setting keepTimes=true
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var options: EndpointOptions
    @OptionGroup var limits: AccountLimitOptions

    @Argument(help: "The account's name.", transform: TextArgument.text)
    var name: String

    @Argument(help: ArgumentHelp("URLs in order of preference.", valueName: "endpoint"))
    var endpoints: [String]

    func run() async throws {
        let transports = CommandContext.current.transports
        var account = Account(name, endpoints: [])
        limits.apply(to: &account)
        for text in endpoints {
            account.endpoints.append(try EndpointURL.endpoint(text, among: transports))
        }
        try options.apply(to: &account.endpoints, of: transports)
        for endpoint in account.endpoints { try transports.validate(endpoint) }
        let added = account
        var wasCalled = false
        let status = try await common.withQueue { queue in
            let isRepeated = wasCalled
            wasCalled = true
            let isAdded = try await queue.save(added, replacing: nil)
            let status = try await queue.account(added.name)
            // If the queue's owner exited during the first call, that call may already have added the account.
            guard isAdded || isRepeated && status?.account == added else {
                throw CommandFailure(
                    .rejected,
                    "An account named \"\(added.name)\" already exists. To change it: transferq account edit \(added.name.shellWord)")
            }
            return status
        }
        if common.json, let status { await CommandContext.current.output.write(JSONValue(status)) }
    }
}
