import ArgumentParser
import TransferControl
import TransferKit

struct SetCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Changes sessions that have not ended, and prints their IDs.",
        discussion: """
            \(aboutGroups)

            Example: transferq set 3f2a --rate 500K --tag night
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var filters: SessionFilters

    @Argument(
        help: ArgumentHelp("IDs, or the first characters of one that no other begins with.", valueName: "id"),
        completion: Candidates.sessions)
    var ids: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Bytes per second, with K, M or G for the binary units; 0 for no limit.", valueName: "rate"))
    var rate: ByteCount?

    @Option(
        help: ArgumentHelp("A tag to have instead of those so far; can be repeated.", valueName: "word"), transform: TextArgument.text)
    var tag: [String] = []

    var selection: SessionSelection { SessionSelection(ids: ids, filters: filters) }
    var operation: SessionOperation { .update(SessionUpdate(rateLimit: rate?.bytes, tags: tag.isEmpty ? nil : tag)) }

    func validate() throws {
        guard rate != nil || !tag.isEmpty else { throw ValidationError("Nothing is to be changed; give --rate or --tag.") }
        try selection.validate()
    }
}
