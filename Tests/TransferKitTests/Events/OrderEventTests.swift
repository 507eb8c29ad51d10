import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct OrderEventTests {
    private struct Operation: Sendable {
        let name: String
        let perform: @Sendable (TransferQueue, Context, inout SplitMix64) async throws -> Void
    }

    private struct Context: Sendable {
        let ids: [SessionID]
        let file: FilePath
        let account: Account

        func requests(_ count: Int) throws -> [SessionRequest] {
            try (0..<count).map { _ in try .upload([file], to: "a") }
        }

        func some(_ generator: inout SplitMix64) -> [SessionID] {
            Array(ids.shuffled(using: &generator).prefix(Int.random(in: 1...4, using: &generator)))
        }
    }

    private static let operations = [
        Operation(name: "enqueue one") { queue, context, _ in try await queue.enqueue(context.requests(1)) },
        Operation(name: "enqueue many") { queue, context, random in
            try await queue.enqueue(context.requests(Int.random(in: 0...5, using: &random)))
        },
        Operation(name: "remove some") { queue, context, random in try await queue.apply(.remove(), to: .sessions(context.some(&random))) },
        Operation(name: "enqueue at an index") { queue, context, random in
            try await queue.enqueue(context.requests(2), at: Int.random(in: 0...context.ids.count, using: &random))
        },
        Operation(name: "move one") { queue, context, random in
            guard let id = context.ids.randomElement(using: &random) else { return }
            try await queue.move(id, to: .index(Int.random(in: 0..<context.ids.count, using: &random)))
        },
        Operation(name: "move some") { queue, context, random in
            let some = context.some(&random)
            try await queue.apply(
                .move(to: .index(Int.random(in: 0...max(0, context.ids.count - some.count), using: &random))), to: .sessions(some))
        },
        Operation(name: "move some beside another") { queue, context, random in
            guard let other = context.ids.randomElement(using: &random) else { return }
            let destination = Bool.random(using: &random) ? MoveDestination.before(other) : .after(other)
            try await queue.apply(.move(to: destination), to: .sessions(context.some(&random)))
        },
        Operation(name: "move one beside another") { queue, context, random in
            guard let id = context.ids.randomElement(using: &random), let other = context.ids.randomElement(using: &random) else { return }
            try await queue.move(id, to: Bool.random(using: &random) ? .before(other) : .after(other))
        },
        Operation(name: "move some to the front") { queue, context, random in
            try await queue.apply(.move(to: .front), to: .sessions(context.some(&random)))
        },
        Operation(name: "move some to the end") { queue, context, random in
            try await queue.apply(.move(to: .end), to: .sessions(context.some(&random)))
        },
        Operation(name: "enqueue for another account") { queue, context, random in
            try await queue.save(context.account)
            let index = Int.random(in: 0...context.ids.count, using: &random)
            try await queue.enqueue([.upload([context.file], to: context.account.name)], at: index)
        },
        Operation(name: "delete the other account") { queue, context, _ in
            try await queue.save(context.account)
            try await queue.deleteAccount(context.account.name, cascades: true)
        },
        Operation(name: "run some now") { queue, context, random in try await queue.apply(.run(), to: .sessions(context.some(&random))) },
        Operation(name: "pause all") { queue, _, _ in try await queue.apply(.pause, to: .all) },
        Operation(name: "resume all") { queue, _, _ in try await queue.apply(.resume, to: .all) },
        Operation(name: "hold some") { queue, context, random in try await queue.apply(.hold, to: .sessions(context.some(&random))) },
        Operation(name: "release all") { queue, _, _ in try await queue.apply(.release, to: .all) },
        Operation(name: "yield some") { queue, context, random in try await queue.apply(.yield, to: .sessions(context.some(&random))) },
        Operation(name: "cancel some") { queue, context, random in try await queue.apply(.cancel(), to: .sessions(context.some(&random))) },
        Operation(name: "retry all") { queue, _, _ in try await queue.apply(.retry, to: .all) },
        Operation(name: "start") { queue, _, _ in try await queue.start() },
        Operation(name: "stop") { queue, _, _ in try await queue.stop() },
    ]

    /// If the seed is even, the queue automatically removes completed sessions.
    @Test(arguments: 1...12) func indicesAreCorrectForEveryObserver(seed: UInt64) async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.open(retention: seed.isMultiple(of: 2) ? .count(2) : .keepAll)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let delegate = RecordingDelegate()
        queue.setDelegate(delegate)
        let first = Task { [events = queue.events] in await OrderReplica.follow(events) }
        let second = Task { [events = queue.events(since: queue.revision)] in await OrderReplica.follow(events) }
        var random = SplitMix64(seed: seed)
        let file = try fixture.folder.file("1", size: 100)
        let other = Account("b", endpoints: [fixture.memory.endpoint(host: "b")])
        var expected: [UInt64: [SessionID]] = [:]
        for _ in 0..<80 {
            guard let operation = Self.operations.randomElement(using: &random) else { continue }
            let (_, ids) = await order(of: queue)
            do {
                try await operation.perform(queue, Context(ids: ids, file: file, account: other), &random)
            } catch let error as QueueError where error.code == .noSuchSession || error.code == .indexOutOfRange {
                #expect(seed.isMultiple(of: 2), "\(operation.name): \(error)")
            }
            let (revision, after) = await order(of: queue)
            expected[revision] = after
        }
        await queue.shutdown()
        let last = await order(of: queue)
        expected[last.revision] = last.ids
        await queue.waitForDelegate()
        let seen = [
            ("first", await first.value), ("second", await second.value),
            ("delegate", await delegate.kinds.reduce(into: OrderReplica()) { $0.apply($1) }),
        ]
        for (name, replica) in seen {
            #expect(replica.problems.isEmpty, "\(name), seed \(seed)")
            #expect(replica.orders.keys.sorted() == Array(1...last.revision), "\(name), seed \(seed)")
            let shown = replica.orders.filter { expected[$0.key] != nil }
            #expect(shown == expected.filter { $0.key > 0 }, "\(name), seed \(seed)")
            #expect(replica.kinds == seen[0].1.kinds, "\(name), seed \(seed)")
        }
    }

    /// Reads the order with its revision. Repeats the read if the order has changed in between, because sessions may complete and be removed at any
    /// time.
    private func order(of queue: TransferQueue) async -> (revision: UInt64, ids: [SessionID]) {
        while true {
            let before = await queue.status().orderRevision
            let ids = await queue.sessionIDs()
            if await queue.status().orderRevision == before { return (before, ids) }
        }
    }
}
