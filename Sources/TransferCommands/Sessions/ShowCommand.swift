import ArgumentParser
import SystemPackage
import TransferControl
import TransferCore
import TransferKit

struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows a session with its files.", discussion: "Example: transferq show 3f2a --json")

    private static let page = 1_000

    @OptionGroup var common: CommonOptions

    @Argument(help: "The session's ID, or the first characters of it.", completion: Candidates.sessions)
    var id: String

    func run() async throws {
        try await common.withQueue(isRepeatable: false) { queue in
            let id = try await SessionPrefix.resolve(id, in: queue)
            let session = try await queue.session(id)
            if common.json {
                try await printJSON(session, of: queue)
            } else {
                try await printText(session, of: queue)
            }
        }
    }

    /// Writes one line page by page: a session may have a million items.
    private func printJSON(_ session: SessionStatus, of queue: any ControllableQueue) async throws {
        let output = CommandContext.current.output
        await output.write(JSONValue(session).text.dropLast() + ",\"items\":[")
        var isFirst = true
        try await forEachPage(of: session.id, in: queue) { items in
            let text = items.map { JSONValue($0).text }.joined(separator: ",")
            await output.write((isFirst ? "" : ",") + text)
            isFirst = false
        }
        await output.write("]}\n")
    }

    private func printText(_ session: SessionStatus, of queue: any ControllableQueue) async throws {
        let output = CommandContext.current.output
        await output.write(SessionDescription.lines(of: session).map { $0.withoutControlCharacters + "\n" }.joined() + "\n")
        try await forEachPage(of: session.id, in: queue) { items in
            var table = Table([("STATE", .left), ("DONE", .right), ("SIZE", .right), ("FILE", .left), ("REMOTE NAME", .left)])
            for item in items {
                table.append([
                    item.state.rawValue, Figures.size(item.bytesDone), Figures.size(item.bytesTotal), item.source.string,
                    item.remoteURL ?? item.destination.description,
                ])
            }
            await output.write(table.text)
            let errors = items.compactMap { item in item.error.map { "\(item.source): \($0)".withoutControlCharacters + "\n" } }
            await output.write(errors.joined())
        }
    }

    private func forEachPage(of id: SessionID, in queue: any ControllableQueue, _ body: ([ItemStatus]) async throws -> Void) async throws {
        var position: Int64 = 0
        while true {
            let items = try await queue.items(of: id, from: position, limit: Self.page)
            guard let last = items.last else { return }
            try await body(items)
            position = last.position + 1
        }
    }
}
