import ArgumentParser
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows a session and its items.", discussion: "Example: transferq show 3f2a --json")

    private static let pageSize = 1_000

    @OptionGroup var common: CommonOptions

    @Argument(help: "\(SessionPrefix.help).", completion: Candidates.sessions)
    var id: String

    @Flag(help: "Show where the time went, not the items.")
    var timing = false

    func run() async throws {
        var hasPrinted = false
        try await common.withQueue(isRepeatable: !hasPrinted) { queue in
            let id = try await SessionPrefix.resolve(id, in: queue)
            let session = try await queue.status(of: id)
            hasPrinted = true
            if common.json {
                try await printJSON(session, of: queue)
            } else {
                try await printText(session, of: queue)
            }
        }
    }

    /// Writes one line of JSON, page by page, because a session can have a million items.
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
        let lines = SessionDescription.lines(of: session).map { $0.withoutControlCharacters + "\n" }.joined() + "\n"
        await output.write(lines + (timing ? TimingDescription.text(of: session) : ""))
        guard !timing else { return }
        try await forEachPage(of: session.id, in: queue) { await output.write(ItemDescription.text(of: $0, session.direction)) }
    }

    private func forEachPage(of id: SessionID, in queue: any ControllableQueue, _ body: ([ItemStatus]) async throws -> Void) async throws {
        var position: Int64 = 0
        while true {
            let items = try await queue.items(of: id, from: position, limit: Self.pageSize)
            guard let last = items.last else { return }
            try await body(items)
            position = last.position + 1
        }
    }
}
