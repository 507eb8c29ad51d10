import ArgumentParser

struct AccountCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account", abstract: "Where files can be sent to, and with which credentials.",
        subcommands: [
            AccountAddCommand.self, AccountListCommand.self, AccountShowCommand.self, AccountEditCommand.self, AccountCheckCommand.self,
            AccountUnblockCommand.self, AccountRemoveCommand.self,
        ])
}
