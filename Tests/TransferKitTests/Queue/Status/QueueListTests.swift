import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct QueueListTests {
    private let ids = (0..<4).map { _ in SessionID() }

    private func list(_ revision: UInt64 = 7) -> QueueList { QueueList(QueueOrder(sessions: Array(ids[..<3]), revision: revision)) }

    @Test func appliesEachChange() {
        var list = list()
        let changes = [
            list.apply(.willChangeQueue(orderRevision: 8)), list.apply(.added([ids[3]], index: 1)),
            list.apply(.didChangeQueue(orderRevision: 8)),
        ]
        #expect(changes == [nil, .inserted(1..<2), nil])
        #expect(list.order == QueueOrder(sessions: [ids[0], ids[3], ids[1], ids[2]], revision: 8))
        _ = list.apply(.willChangeQueue(orderRevision: 9))
        #expect(list.apply(.moved(ids[0], from: 0, to: 3)) == .moved(from: 0, to: 3))
        _ = list.apply(.didChangeQueue(orderRevision: 9))
        #expect(list.apply(.completed(ids[1])) == nil)
        _ = list.apply(.willChangeQueue(orderRevision: 10))
        #expect(list.apply(.removed([ids[3], ids[2]], indices: [0, 2])) == .removed([0, 2]))
        #expect(list.order == QueueOrder(sessions: [ids[1], ids[0]], revision: 10))
    }

    @Test func ignoresKnownChanges() {
        var list = list()
        for event in [QueueEvent.Kind.willChangeQueue(orderRevision: 7), .added([ids[3]], index: 0), .didChangeQueue(orderRevision: 7)] {
            #expect(list.apply(event) == nil)
        }
        #expect(list == self.list())
    }

    @Test func detectsMissingEvents() {
        var list = list()
        #expect(list.apply(.gap(from: 1, to: 2)) == .outdated)
        #expect(list.apply(.willChangeQueue(orderRevision: 9)) == .outdated)
        #expect(list.apply(.added([ids[3]], index: 0)) == nil)
        _ = list.apply(.willChangeQueue(orderRevision: 8))
        #expect(list.apply(.removed([ids[3]], indices: [3])) == .outdated)
    }

    @Test func followsQueue() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let first = try await queue.enqueue(fixture.upload("0"))
        let events = queue.events
        // The list starts with the order after the second call of `enqueue`, so the list ignores the event of this call.
        let second = try await queue.enqueue(fixture.upload("1"))
        var list = QueueList(await queue.order())
        #expect(list.order.sessions == [first.id, second.id])
        for name in ["2", "3"] { _ = try await queue.enqueue(fixture.upload(name), at: 1) }
        try await queue.move(first.id, to: .index(3))
        try await queue.remove(second.id)
        let end = await queue.order()
        for await event in events {
            #expect(list.apply(event.kind) != .outdated)
            if list.order.revision == end.revision { break }
        }
        #expect(list.order == end)
        await queue.shutdown()
    }
}
