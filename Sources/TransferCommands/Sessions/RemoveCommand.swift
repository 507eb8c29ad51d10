import ArgumentParser
import TransferKit

struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes sessions from the queue, whatever their state, and prints their IDs.",
        discussion: "Local files and what arrived at the other end are never touched.")

    @OptionGroup var common: CommonOptions
    @OptionGroup var selection: SessionSelection

    func run() async throws {
        let removed = try await common.withQueue { queue in
            let ids = try await selection.resolve(in: queue)
            if !ids.isEmpty { try await queue.remove(ids) }
            return ids
        }
        let lines = removed.map { common.json ? (["id": .string($0.description)] as JSONValue).text : $0.description }
        await CommandContext.current.output.write(lines.map { $0 + "\n" }.joined())
    }
}
