import ArgumentParser
import Foundation
import TransferControl
import TransferCore
import TransferKit

struct SetCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Changes properties of sessions that have not ended, and prints their IDs.",
        discussion: """
            Only the properties with an option change; the defaults below are those of new sessions. The account, --metadata, --overwrite, \
            --setting and --checksum can change while a session is a draft, waiting or held, until its first bytes are transferred. The start \
            time and the dependency can change while a session is a draft, waiting or held. \(aboutGroups)

            Example: transferq set 3f2a --rate 500K --tag night
            Example: transferq set 3f2a --to-account archive --not-before 2026-07-01T02:00
            """,
        aliases: ["update"])

    @OptionGroup var common: CommonOptions
    @OptionGroup var filters: SessionFilters
    @OptionGroup var transfer: TransferOptions

    @Argument(
        help: ArgumentHelp("\(SessionPrefix.manyHelp).", valueName: "id"),
        completion: Candidates.sessions)
    var ids: [String] = []

    @Option(help: "Move the sessions to this account.", completion: Candidates.accounts, transform: TextArgument.text)
    var toAccount: String?

    @Option(help: ArgumentHelp("The new name of the sessions.", valueName: "text"), transform: TextArgument.text)
    var name: String?

    @Option(
        help: ArgumentHelp("A tag. The given tags replace all current tags; repeatable.", valueName: "word"), transform: TextArgument.text)
    var tag: [String] = []

    @Option(
        parsing: .unconditional, help: ArgumentHelp("A JSON value to store with the sessions.", valueName: "json"),
        transform: TextArgument.text)
    var context: String?

    @Option(help: ArgumentHelp("Start after this session has completed.", valueName: "id"), completion: Candidates.sessions)
    var after: String?

    @Flag(help: "Remove the dependency on another session.")
    var afterNone = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Start at this time or later, as for \"transferq add\"; +0s for no start time.", valueName: "time"))
    var notBefore: StartTime?

    @Option(
        help: "Whether downloads and SFTP uploads replace existing files: \(DirectionOptions.policies).",
        completion: .list(OverwritePolicy.allCases.map(\.rawValue)), transform: DirectionOptions.policy)
    var overwrite: OverwritePolicy?

    var selection: SessionSelection { SessionSelection(ids: ids, filters: filters) }

    var operation: SessionOperation {
        get async throws {
            var update = try await transfer.update()
            update.account = toAccount
            update.name = name
            update.tags = tag.isEmpty ? nil : tag
            update.context = context.map { Data($0.utf8) }
            update.notBefore = notBefore.map { .set($0.date) }
            update.dependency = afterNone ? .remove : nil
            update.overwrite = overwrite
            guard update != SessionUpdate() || after != nil else {
                throw CommandFailure(.usage, "There is nothing to change. Use an option such as --rate, --tag or --to-account.")
            }
            return .update(update)
        }
    }

    func resolved(_ operation: SessionOperation, in queue: any ControllableQueue) async throws -> SessionOperation {
        guard let after, case .update(var update) = operation else { return operation }
        update.dependency = .set(.after(try await SessionPrefix.resolve(after, in: queue)))
        return .update(update)
    }

    func validate() throws {
        if after != nil, afterNone { throw ValidationError("--after and --after-none can't be used together.") }
        if name == "" { throw ValidationError("--name is empty. Give the sessions a name, or omit the option.") }
        if let context, !JSONValue.isJSON(Data(context.utf8)) {
            throw ValidationError(
                "The value of --context is not JSON, or has a number out of range. A JSON string needs double quotes: '\"text\"'.")
        }
        if tag.contains("") { throw ValidationError("--tag is empty. Give it a word, or omit the option.") }
        if filters.failed { throw ValidationError("--failed selects sessions that have ended, and these can't change.") }
        try selection.validate()
    }
}
