import ArgumentParser
import TransferControl
import TransferKit

struct AccountCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Connects to each endpoint of an account, and tells what answers.",
        discussion: """
            Moves no file. Credentials are read as this shell has them, which need not be as the agent has them. Ends with 1 if an endpoint \
            does not answer, or the account is blocked.

            Example: transferq account check studio
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var patience: CheckOptions

    @Argument(help: "The account's name.", completion: Candidates.accounts, transform: TextArgument.text)
    var name: String

    func run() async throws {
        ProcessSecrecy.begin()
        guard let status = try await common.withQueue({ try await $0.account(name) }) else {
            throw CommandFailure(.unfit, "There is no account named \"\(name)\".")
        }
        // The store is let go by now: a server may take its time.
        let findings = await EndpointCheck.findings([status], CommandContext.current.transports, within: patience.limit)
        await CommandContext.current.output.write(findings, asJSON: common.json)
        if findings.contains(where: { $0.state == .wrong }) { throw ExitStatus.incomplete }
    }
}
