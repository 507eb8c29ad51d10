import Foundation
import TransferCore
import TransferKit

/// The specification of the operations: the effect of each operation on a session in each state.
///
/// A cell contains the session's state after the operation. If the session has a run, the cell contains the state after the end of this
/// run. If the call throws an error, the cell contains the error's code; ✗ stands for `invalidTransition`.
///
/// In a cell with two states, the first state applies to a running queue, and the second to a draining or stopped queue. A session whose
/// new state is `waiting` starts when its turn comes.
enum OperationTable {
    /// The column `ending` is for sessions that were interrupted, but whose run has not ended yet.
    static let columns = ["waiting", "running", "ending", "paused", "held", "cancelled", "failed", "completed", "draft"]

    static let modes = ["running", "draining", "stopped"]

    private static let text = """
        run       | waiting | running | waiting   | running / waiting | waiting | waiting | waiting   | alreadyCompleted | ✗
        run again | waiting | running | waiting   | running / waiting | waiting | waiting | waiting   | waiting | ✗
        runNext   | waiting | ✗       | waiting   | ✗       | ✗         | ✗         | ✗         | ✗ | ✗
        pause     | held    | paused  | held      | ✗       | ✗         | ✗         | ✗         | ✗ | ✗
        resume    | ✗       | ✗       | ✗         | running / waiting | waiting | ✗ | ✗         | ✗ | ✗
        hold      | held    | held    | held      | held    | ✗         | ✗         | ✗         | ✗ | ✗
        release   | ✗       | ✗       | ✗         | ✗       | waiting   | ✗         | ✗         | ✗ | ✗
        yield     | waiting | waiting | waiting   | waiting | ✗         | ✗         | ✗         | ✗ | ✗
        cancel    | cancelled | cancelled | cancelled | cancelled | cancelled | ✗   | cancelled | ✗ | ✗
        retry     | ✗       | ✗       | ✗         | ✗       | ✗         | waiting   | waiting   | ✗ | ✗
        move      | waiting | running | waiting   | paused  | held      | cancelled | failed    | completed | ✗
        enqueue   | ✗       | ✗       | ✗         | ✗       | ✗         | ✗         | ✗         | ✗         | waiting
        update    | waiting | running | waiting   | paused  | held      | cancelled | failed    | ✗ | draft
        addItems  | waiting | running | waiting   | paused  | held      | ✗         | ✗         | ✗ | draft
        replaceItems | waiting | ✗    | ✗         | paused  | held      | ✗         | ✗         | ✗         | draft
        remove    | removed | removed | removed   | removed | removed   | removed   | removed   | removed | removed
        """

    /// A cell of the table, for one mode of the queue.
    struct Cell: CustomStringConvertible, Sendable {
        let operation: String
        let state: String
        let mode: String
        let expected: String

        var description: String { "\(operation) on a \(state) session in a \(mode) queue: \(expected)" }
    }

    private static let rows: [[String]] = text.split(separator: "\n").map { line in
        line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces).replacingOccurrences(of: "✗", with: "invalidTransition") }
    }

    /// All valid combinations of operation, state and mode. A stopped queue has no running or ending sessions.
    static let cells: [Cell] = rows.flatMap { row in
        zip(columns, row.dropFirst()).flatMap { state, cell in
            modes.filter { $0 != "stopped" || (state != "running" && state != "ending") }.map { mode in
                let choices = cell.components(separatedBy: " / ")
                return Cell(
                    operation: row[0], state: state, mode: mode, expected: (mode == "running" ? choices.first : choices.last) ?? cell)
            }
        }
    }

    /// The table as it appears in the article *Operations*.
    static var markdown: String {
        let head = ["operation"] + columns
        let lines = [head, head.map { _ in "---" }] + rows.map { row in ["`\(row[0])`"] + row.dropFirst().map { formatted($0) } }
        return lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }

    private static func formatted(_ cell: String) -> String {
        switch cell {
        case "invalidTransition": "–"
        case "alreadyCompleted": "`.alreadyCompleted`"
        default: cell
        }
    }

    static func command(_ name: String, _ session: SessionReference) -> Command? {
        let operation: SessionOperation
        switch name {
        case "run": operation = .run()
        case "run again": operation = .run(again: true)
        case "runNext": operation = .runNext
        case "pause": operation = .pause
        case "resume": operation = .resume
        case "hold": operation = .hold
        case "release": operation = .release
        case "yield": operation = .yield
        case "cancel": operation = .cancel()
        case "retry": operation = .retry
        case "move": operation = .move(to: .front)
        case "enqueue": operation = .enqueue()
        case "update": operation = .update(SessionUpdate(tags: ["red"]))
        case "remove": operation = .remove()
        case "addItems":
            return .addItems(session, [ItemDraft(source: Data("/g".utf8), destination: Data("g".utf8), size: 1)])
        case "replaceItems": return .replaceItems(.at([0]), ReplaceableItems(), with: [], in: session)
        default: return nil
        }
        return .perform(operation, .one(session))
    }
}
