import ArgumentParser
import Foundation
import TransferKit
import TransferOutput

/// Options of new sessions that don't affect the transfer itself, such as the name and the position.
struct NewSessionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The session's name (default: from the first path).", valueName: "text"),
        transform: TextArgument.text)
    var name: String?

    @Option(help: ArgumentHelp("A tag for selecting the session; repeatable.", valueName: "word"), transform: TextArgument.text)
    var tag: [String] = []

    @Option(
        parsing: .unconditional, help: ArgumentHelp("A JSON value to store with the session.", valueName: "json"),
        transform: TextArgument.text)
    var context: String?

    @Option(
        help: ArgumentHelp("Add nothing if an unfinished session has this key.", valueName: "key"),
        transform: TextArgument.text)
    var dedupe: String?

    @Flag(help: "With --dedupe, also match completed sessions.")
    var dedupeCompleted = false

    @Flag(help: "Save a draft instead of queueing the session.")
    var draft = false

    @Flag(help: "Add one session for each path.")
    var each = false

    @OptionGroup(title: "Position and start") var placement: PlacementOptions

    func validate() throws {
        if let name, name.isEmpty { throw ValidationError("--name is empty. Omit it to use the name of the first path.") }
        try Self.validate(context: context)
        if dedupe == "" {
            throw ValidationError("--dedupe is empty. Specify a key, or omit the option.")
        }
        if dedupeCompleted, dedupe == nil { throw ValidationError("--dedupe-completed requires --dedupe.") }
        if draft, placement.position.isGiven {
            throw ValidationError("A draft has no position. Omit --at, --next, --now and --hold, or pass them to \"transferq enqueue\".")
        }
        if draft, dedupeCompleted { throw ValidationError("--draft and --dedupe-completed can't be used together.") }
        if tag.contains("") { throw ValidationError("--tag is empty. Specify a word, or omit the option.") }
        if each, dedupe != nil {
            throw ValidationError("--each and --dedupe can't be used together, because all sessions would have the same key.")
        }
    }

    static func validate(context: String?) throws {
        guard let context, !JSONValue.isJSON(Data(context.utf8)) else { return }
        throw ValidationError(
            "The value of --context is not valid JSON, or contains a number that is out of range. A JSON string needs double quotes: '\"text\"'."
        )
    }

    func apply(to request: inout SessionRequest) {
        request.context = context.map { Data($0.utf8) }
        request.deduplicationKey = dedupe
        request.deduplicatesCompleted = dedupeCompleted
    }
}
