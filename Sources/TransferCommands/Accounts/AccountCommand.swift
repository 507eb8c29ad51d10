import ArgumentParser

struct AccountCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account", abstract: "Manages accounts: endpoints and their credentials.",
        discussion: "Example: transferq account add studio https://upload.example.com/files/ --token-env STUDIO_TOKEN",
        subcommands: [
            AccountAddCommand.self, AccountListCommand.self, AccountShowCommand.self, AccountEditCommand.self, AccountCheckCommand.self,
            AccountUnblockCommand.self, AccountRetryCommand.self, AccountRemoveCommand.self,
        ])
}
