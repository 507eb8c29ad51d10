import ArgumentParser
import TransferControl
import TransferCore
import TransferKit

struct AccountAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds an account with its endpoints, in order of preference.",
        discussion: """
            Credentials are named, never given: the variable or the file is read each time that a connection needs it. The path of an \
            endpoint is the folder that remote names are relative to.

            https:// and tus+https:// mean a tus server. A server that knows only plain HTTP takes each file as a PUT (https+put://) or in a \
            form (https+form://, in the field "file", with the session's --metadata as text fields), or is there to download from \
            (https+get://). In their URLs, {name}, {path} and {transfer} stand for the last component of the remote name, all of it, and an \
            ID of the transfer. With http in place of https there is no TLS.

            Example: transferq account add studio https://upload.example.com/files/ --token-env STUDIO_TOKEN
            Settings of a tus server are, among others, chunkSize, httpVersion, pinnedPublicKeys, proxy and parallelThreshold; of SFTP, \
            keepTimes, keepModes, partFiles, sync, maxConnections, proxy and proxyCommand; of plain HTTP, fileField, field.NAME (a text field of the form), \
            file.NAME (the path of a file that goes along, {source}.jpg for one beside each), contentType, acceptedStatuses and \
            transferTimeout. A session can have some of the last of its own: transferq add --setting upload=form. A name that the transport \
            does not know is refused with those that it knows. Addresses and settings are stored as they are: a signature in an address, too.

            Example: transferq account add bucket 'https+put://bucket.example.com/in/{path}?signature=…'
            Example: transferq account add archive sftp://me@files.example.com/in/ --setting keepTimes=true
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var options: EndpointOptions
    @OptionGroup var limits: AccountLimitOptions

    @Argument(help: "The account's name.", transform: TextArgument.text)
    var name: String

    @Argument(help: ArgumentHelp("URLs, the preferred one first.", valueName: "endpoint"))
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
        var wasAsked = false
        let status = try await common.withQueue { queue in
            let isRepeated = wasAsked
            wasAsked = true
            let isAdded = try await queue.save(added, replacing: nil)
            let status = try await queue.account(added.name)
            // An owner that ended before it answered may have added it.
            guard isAdded || isRepeated && status?.account == added else {
                throw CommandFailure(.unfit, "There is an account named \"\(added.name)\" already.")
            }
            return status
        }
        if common.json, let status { await CommandContext.current.output.write(JSONValue(status)) }
    }
}
