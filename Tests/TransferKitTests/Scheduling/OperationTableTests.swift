import Foundation
import Testing
import TransferCore
import TransferKit

@Suite struct OperationTableTests {
    @Test(arguments: OperationTable.cells) func performsOrRejectsOperation(cell: OperationTable.Cell) throws {
        var queue = try SchedulerFixture(limit: 3)
        let command = try #require(OperationTable.command(cell.operation, .id(SessionID(named: "S"))))
        // The other session keeps the account's only slot, so no waiting session starts immediately. A paused session keeps a second slot.
        try queue.add(cell.state == "draft" ? "other" : "other S")
        try bring(&queue, to: cell.state)
        try queue.perform(.setMaxConcurrentSessions(cell.state == "paused" ? 2 : 1, account: "a"))
        if cell.mode == "draining" { try queue.perform(.stop(.drain)) }
        if cell.mode == "stopped" {
            try queue.perform(.stop(.interrupt))
            try queue.finishStopping("other")
        }
        #expect(queue.mode == cell.mode)
        let before = queue.session("S")
        #expect(before.map { $0.isEnding ? "ending" : "\($0.state)" } == cell.state)

        let code = try queue.perform(command)

        let after = queue.session("S")
        if let code {
            #expect(code.rawValue == cell.expected)
            #expect(after == before)
        } else {
            #expect(after.map { "\($0.target)" } ?? "removed" == cell.expected)
        }
    }

    private func bring(_ queue: inout SchedulerFixture, to state: String) throws {
        switch state {
        case "waiting":
            try queue.end("S", .backoff(.seconds(3_600), .broken))
        case "ending":
            try queue.apply(.yield, "S")
        case "paused":
            try queue.apply(.pause, "S")
            try queue.finishStopping("S")
        case "held":
            try queue.apply(.hold, "S")
            try queue.finishStopping("S")
        case "cancelled":
            try queue.apply(.cancel(), "S")
            try queue.finishStopping("S")
        case "failed": try queue.end("S", .finished(failure: .broken, ignoresNewFiles: false))
        case "completed": try queue.end("S")
        case "draft": try queue.perform(.saveDrafts([.draft(id: SessionID(named: "S"))]))
        default: break
        }
    }

    @Test func writesCompleteTable() {
        let lines = OperationTable.markdown.split(separator: "\n")
        #expect(lines.count == 18)
        #expect(lines.allSatisfy { $0.split(separator: "|").count == 10 })
        #expect(lines[6] == "| `resume` | – | – | – | running / waiting | waiting | – | – | – | – |")
        // 16 operations, with 9 states in each of the modes "running" and "draining". A stopped queue has no running or ending sessions, so
        // 7 states remain.
        #expect(OperationTable.cells.count == 16 * (9 + 9 + 7))
    }

    @Test func matchesArticle() throws {
        var root = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { root.deleteLastPathComponent() }
        let article = try String(
            contentsOf: root.appending(path: "Sources/TransferKit/TransferKit.docc/QueueOperations.md"), encoding: .utf8)
        let sections = article.components(separatedBy: "<!-- operations: begin -->")
        let shown = try #require(sections.last?.components(separatedBy: "<!-- operations: end -->").first)
        #expect(sections.count == 2)
        #expect(shown.trimmingCharacters(in: .newlines) == OperationTable.markdown)
    }
}
