import ArgumentParser
import Foundation
import TransferControl
import TransferCore
import TransferKit

struct SetCommand: OperationCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Changes properties of sessions.",
        discussion: """
            Completed sessions can't change. Omitted properties keep their values; the defaults below apply only to new sessions. Some \
            properties can't change after the first byte; see "Changing running sessions" in the documentation. \(aboutGroups)

            Example: transferq set 3f2a --rate 500K --set-tag night
            Example: transferq set --tag night --to-account archive --not-before 2026-07-01T02:00
            """)

    @OptionGroup var common: CommonOptions

    @Argument(
        help: ArgumentHelp("\(SessionPrefix.manyHelp).", valueName: "id"),
        completion: Candidates.sessions)
    var ids: [String] = []

    @OptionGroup var filters: SessionFilters

    @Option(help: "Select the sessions with this tag.", completion: Candidates.tags, transform: TextArgument.text)
    var tag: String?

    @Option(
        help: ArgumentHelp("Move the sessions to this account.", valueName: "account"), completion: Candidates.accounts,
        transform: TextArgument.text)
    var toAccount: String?

    @Option(help: ArgumentHelp("The new name of the sessions.", valueName: "text"), transform: TextArgument.text)
    var name: String?

    @Option(
        help: ArgumentHelp("A tag that replaces the current tags; repeatable.", valueName: "word"), transform: TextArgument.text)
    var setTag: [String] = []

    @Option(
        parsing: .unconditional, help: ArgumentHelp("A JSON value to store with the sessions.", valueName: "json"),
        transform: TextArgument.text)
    var context: String?

    @Option(help: ArgumentHelp("Start after this session has completed.", valueName: "id"), completion: Candidates.sessions)
    var after: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The earliest start; see transferq upload.", valueName: "time"))
    var notBefore: StartTime?

    @OptionGroup(title: "Upload") var upload: UploadOptions
    @OptionGroup(title: "Download") var download: DownloadOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions

    @Option(
        help: ArgumentHelp(
            "Remove the value of this option; repeatable.",
            discussion: "Options: \(ClearedProperty.allCases.map(\.rawValue).joined(separator: ", ")).", valueName: "option"),
        completion: .list(ClearedProperty.allCases.map(\.rawValue)))
    var clear: [ClearedProperty] = []

    /// Another name for `--clear tags`.
    @Flag(help: .hidden)
    var clearTags = false

    /// The former name of `--clear after`.
    @Flag(help: .hidden)
    var afterNone = false

    var selection: SessionSelection { SessionSelection(ids: ids, filters: filters, tag: tag) }

    var operation: SessionOperation {
        get async throws {
            var update = try await transfer.update(upload, download)
            update.account = toAccount
            update.name = name
            update.tags = setTag.isEmpty ? nil : setTag
            update.context = context.map { .set(Data($0.utf8)) }
            update.notBefore = notBefore.map { .set($0.date) }
            for property in Set(clear + (clearTags ? [.tags] : []) + (afterNone ? [.after] : [])) {
                guard !property.isChanged(by: update), property != .after || after == nil else {
                    throw CommandFailure(.usage, "\(property.option) and --clear \(property.rawValue) can't be used together.")
                }
                property.clear(in: &update)
            }
            guard update != SessionUpdate() || after != nil else {
                throw CommandFailure(.usage, "There is nothing to change. Use an option such as --rate, --set-tag or --to-account.")
            }
            return .update(update)
        }
    }

    func resolved(_ operation: SessionOperation, in queue: any ControllableQueue) async throws -> SessionOperation {
        if let toAccount { _ = try await queue.existingAccount(toAccount) }
        guard let after, case .update(var update) = operation else { return operation }
        update.dependency = .set(.after(try await SessionPrefix.resolve(after, in: queue)))
        return .update(update)
    }

    func validate() throws {
        if name == "" { throw ValidationError("--name is empty. Give the sessions a name, or omit the option.") }
        try NewSessionOptions.validate(context: context)
        if setTag.contains("") { throw ValidationError("--set-tag is empty. Specify a word, or use --clear tags.") }
        if !ids.isEmpty, tag != nil { throw ValidationError("--tag and IDs can't be used together. To replace tags: --set-tag") }
        try selection.validate()
    }
}
