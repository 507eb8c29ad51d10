import ArgumentParser
import TransferControl
import TransferKit

/// A command that applies an operation to the selected sessions and prints the IDs of the changed sessions.
protocol OperationCommand: AsyncParsableCommand {
    var common: CommonOptions { get }
    var selection: SessionSelection { get throws }
    var operation: SessionOperation { get throws }
}

extension OperationCommand {
    /// The help text that explains operations on several sessions.
    static var aboutGroups: String { "With --all or a filter, sessions in a state that does not allow the operation are left unchanged." }

    func run() async throws {
        let (operation, selection) = (try operation, try selection)
        var resolved: [SessionID]?
        let applied = try await common.withQueue { try await selection.apply(operation, in: $0, resolved: &resolved) }
        await CommandContext.current.output.write(applied.changed, asJSON: common.json)
        guard applied.refusals.isEmpty else {
            throw CommandFailure(.rejected, applied.refusals.map(\.message).joined(separator: "\n"))
        }
    }
}

extension OutputWriter {
    /// Writes IDs, one per line.
    func write(_ ids: [SessionID], asJSON isJSON: Bool) async {
        let lines = ids.map { isJSON ? (["id": .string($0.description)] as JSONValue).text : $0.description }
        await write(lines.map { $0 + "\n" }.joined())
    }
}
