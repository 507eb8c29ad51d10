import Foundation
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTUS

/// Tests the session table of the article "Observing transfers" with a queue.
@MainActor @Suite struct SessionTableTests {
    /// A view that counts its rows and compares each change with the table.
    final class CountingView: RowView {
        private(set) var count = 0
        private(set) var problems = 0
        var table: SessionTable?

        private var rows: Int { table?.list.order.sessions.count ?? 0 }

        func insertRows(at indices: Range<Int>) { check(indices.upperBound <= rows, count + indices.count) }
        func deleteRows(at indices: [Int]) { check(indices.allSatisfy { $0 < count }, count - indices.count) }
        func moveRow(from index: Int, to newIndex: Int) { check(index < count && newIndex < count, count) }
        func reloadRow(at index: Int) { check(index < count, count) }
        func reloadAll() { check(true, rows) }

        private func check(_ isValid: Bool, _ newCount: Int) {
            if !isValid || newCount != rows { problems += 1 }
            count = newCount
        }
    }

    @Test func tableFollowsQueue() async throws {
        let folder = FilePath(NSTemporaryDirectory()).appending("queue-list-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let queue = try await TransferQueue(
            storage: .folder(folder), transports: [TUSTransport()], configuration: QueueConfiguration(logger: logger))
        try await queue.save(Account("a", endpoints: [.tus("https://example.invalid/")]))
        let items = [TransferItem.data(Data([1]), as: try RemotePath("one"))]
        func add(_ count: Int, at index: Int? = nil) async throws -> [SessionID] {
            try await queue.enqueue((0..<count).map { _ in try .upload(items: items, to: "a") }, at: index).map(\.id)
        }
        let first = try await add(3)
        let view = CountingView()
        let table = SessionTable(view: view)
        view.table = table
        let following = Task { await table.follow(queue) }

        let second = try await add(4, at: 1)
        try await queue.apply(.move(to: .front), to: .sessions([first[2], second[3]]))
        try await queue.apply(.remove(), to: .sessions([second[0], first[1]]))
        try await queue.move(first[0], to: .end)
        try await queue.apply(.hold, to: .all)
        let expected = await queue.sessionIDs()
        await queue.shutdown()
        await following.value

        #expect(table.list.order.sessions == expected)
        #expect(view.count == 5)
        #expect(view.problems == 0)
    }
}
