import ArgumentParser
import TransferKit

struct AccountRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "remove", abstract: "Removes an account that no session refers to.")

    @OptionGroup var common: CommonOptions

    @Flag(help: .hidden)
    var cascade = false

    @Argument(help: "The account's name.")
    var name: String

    func validate() throws {
        try LaterOptions.refuse([("--cascade", cascade)])
    }

    func run() async throws {
        try await common.withQueue { try await $0.deleteAccount(name) }
        if common.json { await CommandContext.current.output.write(["name": .string(name)] as JSONValue) }
    }
}
