import ArgumentParser
import TransferControl
import TransferCore
import TransferKit

struct AccountAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds an account with its endpoints, in order of preference.",
        discussion: """
            To give a secret, name the environment variable or the file that contains it. transferq reads the secret for each connection and \
            never stores it. Remote names are relative to the path of the endpoint's URL.

            https:// and tus+https:// are for tus servers, and sftp:// is for SFTP servers. For plain HTTP servers, https+put:// sends each file \
            as a PUT request, https+form:// sends it as a form (in the field "file", with the session's --metadata as text fields), and \
            https+get:// allows only downloads. URLs of plain HTTP servers can contain {name} (the last component of the remote name), {path} \
            (the whole remote name) and {transfer} (an ID that stays the same when a transfer is retried). The same schemes with http instead of \
            https work without TLS.

            --setting changes settings of the transports. A session can override some settings of plain HTTP, for example: transferq upload \
            --setting upload=form. Addresses and settings are stored unencrypted, including signatures in addresses.

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
            // If the owner exited during the first call, it may already have added the account.
            guard isAdded || isRepeated && status?.account == added else {
                throw CommandFailure(
                    .rejected, "An account named \"\(added.name)\" already exists. To change it: transferq account edit '\(added.name)'")
            }
            return status
        }
        if common.json, let status { await CommandContext.current.output.write(JSONValue(status)) }
    }
}
