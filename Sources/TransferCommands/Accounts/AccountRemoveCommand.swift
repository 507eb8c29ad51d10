import ArgumentParser
import TransferControl
import TransferKit

struct AccountRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes an account. Fails if the account has sessions, unless --cascade is given.",
        discussion: "Example: transferq account remove studio --cascade")

    @OptionGroup var common: CommonOptions

    @Flag(help: "Also remove the sessions of the account.")
    var cascade = false

    @Argument(help: "The account's name.", completion: Candidates.accounts, transform: TextArgument.text)
    var name: String

    func run() async throws {
        var wasCalled = false
        try await common.withQueue { queue in
            let isRepeated = wasCalled
            wasCalled = true
            do {
                try await queue.deleteAccount(name, cascades: cascade)
            } catch let error as QueueError where error.code == .noSuchAccount && isRepeated {
                // The owner removed the account during the first call, but exited before it responded.
            }
        }
        if common.json { await CommandContext.current.output.write(["name": .string(name)] as JSONValue) }
    }
}
