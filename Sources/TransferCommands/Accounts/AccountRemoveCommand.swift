import ArgumentParser
import TransferControl
import TransferKit
import TransferOutput

struct AccountRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes an account; with --cascade, also its sessions.",
        discussion: "Example: transferq account remove studio --cascade")

    @OptionGroup var common: CommonOptions

    @Flag(help: "Also remove the sessions of the account.")
    var cascade = false

    @OptionGroup var confirmation: ConfirmationOptions

    @Argument(help: "The account's name.", completion: Candidates.accounts, transform: TextArgument.text)
    var name: String

    func validate() throws {
        if confirmation.dryRun, !cascade { throw ValidationError("--dry-run needs --cascade. Without --cascade, no session is removed.") }
    }

    func run() async throws {
        if cascade {
            let sessions = try await common.withQueue { queue in
                _ = try await queue.existingAccount(name)
                let drafts = try await queue.sessions(in: .state(.draft)).filter { $0.account == name }
                return (try await queue.sessions(in: .account(name)) + drafts).map(\.id)
            }
            guard !confirmation.dryRun else { return await CommandContext.current.output.write(sessions, asJSON: common.json) }
            if !sessions.isEmpty {
                try await confirmation.confirm(
                    "Remove the account \"\(name)\" and its \(Figures.count(sessions.count, "session"))?")
            }
        }
        var wasCalled = false
        try await common.withQueue { queue in
            let isRepeated = wasCalled
            if !isRepeated { _ = try await queue.existingAccount(name) }
            wasCalled = true
            do {
                try await queue.deleteAccount(name, cascades: cascade)
            } catch let error as QueueError where error.code == .noSuchAccount && isRepeated {
                // The queue's owner removed the account during the first call, but exited before it responded.
            }
        }
        if common.json { await CommandContext.current.output.write(["name": .string(name)] as JSONValue) }
    }
}
