import ArgumentParser
import TransferControl
import TransferKit

struct AccountCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Connects to each endpoint, and reports the result.",
        discussion: """
            Transfers no files. Reads credentials from the environment of this shell, which can differ from the agent's. Exits with 1 if a \
            check fails or the account is blocked.

            Example: transferq account check studio
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var checkOptions: CheckOptions

    @Argument(help: "The account's name.", completion: Candidates.accounts, transform: TextArgument.text)
    var name: String

    func run() async throws {
        ProcessMemoryProtection.enable()
        let status = try await common.withQueue { try await $0.existingAccount(name) }
        // `withQueue` has released the queue, so other commands can use it while this command waits for servers.
        let findings = await EndpointCheck.findings([status], CommandContext.current.transports, within: checkOptions.limit)
        await CommandContext.current.output.write(findings, asJSON: common.json)
        if findings.contains(where: { $0.state == .wrong }) { throw ExitStatus.incomplete }
    }
}
