import ArgumentParser
import TransferControl
import TransferKit

/// A command that does one thing to the sessions that are selected, and prints the IDs of those that it was done to.
protocol OperationCommand: AsyncParsableCommand {
    var common: CommonOptions { get }
    var selection: SessionSelection { get throws }
    var operation: SessionOperation { get throws }
}

extension OperationCommand {
    /// What the help of each says of sessions that are not named one by one.
    static var aboutGroups: String { "Of sessions that are not named by ID, those that it does not fit are left as they are." }

    func run() async throws {
        let (operation, selection) = (try operation, try selection)
        var named: [SessionID]?
        let applied = try await common.withQueue { try await selection.apply(operation, in: $0, toNamed: &named) }
        await CommandContext.current.output.write(applied.changed, asJSON: common.json)
        guard applied.refusals.isEmpty else {
            throw CommandFailure(.unfit, applied.refusals.map(\.message).joined(separator: "\n"))
        }
    }
}

extension OutputWriter {
    /// Writes IDs, one a line.
    func write(_ ids: [SessionID], asJSON isJSON: Bool) async {
        let lines = ids.map { isJSON ? (["id": .string($0.description)] as JSONValue).text : $0.description }
        await write(lines.map { $0 + "\n" }.joined())
    }
}
