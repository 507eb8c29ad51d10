import ArgumentParser
import TransferControl
import TransferKit

struct SetCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Changes the rate limit or tags of sessions that have not ended, and prints their IDs.",
        discussion: """
            \(aboutGroups)

            Example: transferq set 3f2a --rate 500K --tag night
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var filters: SessionFilters

    @Argument(
        help: ArgumentHelp("\(SessionPrefix.manyHelp).", valueName: "id"),
        completion: Candidates.sessions)
    var ids: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The rate limit in bytes per second, with K, M or G for binary units; 0 for no limit.", valueName: "rate"))
    var rate: ByteCount?

    @Option(
        help: ArgumentHelp("A tag. The given tags replace all current tags; repeatable.", valueName: "word"), transform: TextArgument.text)
    var tag: [String] = []

    var selection: SessionSelection { SessionSelection(ids: ids, filters: filters) }
    var operation: SessionOperation {
        let rateLimit = rate.map { $0.bytes > 0 ? SessionUpdate.RateLimit.bytesPerSecond($0.bytes) : .unlimited }
        return .update(SessionUpdate(rateLimit: rateLimit, tags: tag.isEmpty ? nil : tag))
    }

    func validate() throws {
        guard rate != nil || !tag.isEmpty else { throw ValidationError("There is nothing to change. Use --rate or --tag.") }
        try selection.validate()
    }
}
