import ArgumentParser
import Foundation
import SystemPackage
import TransferCore
import TransferKit

struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds a session that sends files, and prints its ID.",
        discussion: """
            All files are one session, sent in this order. Nothing is transferred before "run". Where one can't be read, all that are wrong \
            are named and nothing is added.
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup(visibility: .hidden) var later: LaterAddOptions

    @Argument(help: "The account to send to.")
    var account: String

    @Argument(help: "Files, or - for paths from standard input, separated by NUL or by line breaks.")
    var paths: [PathArgument]

    @Option(help: ArgumentHelp("A folder below the endpoint's.", valueName: "remote"))
    var to: String?

    @Option(help: ArgumentHelp("A name for the session.", valueName: "text"))
    var name: String?

    @Option(help: ArgumentHelp("A word to find the session by; can be repeated.", valueName: "word"))
    var tag: [String] = []

    @Option(help: ArgumentHelp("A JSON value of your own, kept with the session.", valueName: "json"))
    var context: String?

    @Option(help: ArgumentHelp("A name and a value to tell the server with each file; can be repeated.", valueName: "name=value"))
    var metadata: [String] = []

    @Flag(help: "One session for each file.")
    var each = false

    func validate() throws {
        for (option, text) in [("--name", name.map { [$0] } ?? []), ("--tag", tag), ("--context", context.map { [$0] } ?? [])] {
            guard text.allSatisfy(ProcessArguments.isText) else { throw ValidationError("The value of \(option) is not UTF-8.") }
        }
        if let context, !JSONValue.isJSON(Data(context.utf8)) {
            throw ValidationError("The value of --context is not JSON; a text needs quotes of its own: '\"text\"'.")
        }
        _ = try metadataValues()
        _ = try RemoteNaming(to: to.map(ProcessArguments.bytes))
    }

    func run() async throws {
        let paths = try await LocalPaths.read(paths.map(\.path))
        let naming = try RemoteNaming(to: to.map(ProcessArguments.bytes))
        let items = try paths.map { TransferItem($0, as: try naming.destination(of: $0)) }
        let batches = each ? items.map { [$0] } : [items]
        let options = SessionOptions(metadata: try metadataValues())
        let requests = try batches.map { batch in
            var request = try SessionRequest.upload(items: batch, to: account, name: name, tags: tag, options: options)
            request.context = context.map { Data($0.utf8) }
            return request
        }
        let ids = try await common.withQueue { try await $0.enqueue(requests).map(\.id) }
        let lines = ids.map { common.json ? (["id": .string($0.description)] as JSONValue).text : $0.description }
        await CommandContext.current.output.write(lines.map { $0 + "\n" }.joined())
    }

    private func metadataValues() throws -> [String: String] {
        var values: [String: String] = [:]
        for text in metadata {
            guard ProcessArguments.isText(text), let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw ValidationError("--metadata takes NAME=VALUE.")
            }
            let name = String(text[..<equals])
            guard values.updateValue(String(text[text.index(after: equals)...]), forKey: name) == nil else {
                throw ValidationError("--metadata names \"\(name)\" twice.")
            }
        }
        return values
    }
}
