import SystemPackage
import Testing
import TransferKit

/// The changes of the order, as those see them who follow the events.
@Suite struct OrderEventTests {
    /// Something that changes the order, or might.
    private struct Operation: Sendable {
        let name: String
        let perform: @Sendable (TransferQueue, Context, inout SplitMix64) async throws -> Void
    }

    private struct Context: Sendable {
        let ids: [SessionID]
        let file: FilePath

        func requests(_ count: Int) throws -> [SessionRequest] {
            try (0..<count).map { _ in try .upload([file], to: "a") }
        }

        func some(_ generator: inout SplitMix64) -> [SessionID] {
            Array(ids.shuffled(using: &generator).prefix(Int.random(in: 1...4, using: &generator)))
        }
    }

    /// One line each.
    private static let operations = [
        Operation(name: "enqueue one") { queue, context, _ in try await queue.enqueue(context.requests(1)) },
        Operation(name: "enqueue many") { queue, context, random in
            try await queue.enqueue(context.requests(Int.random(in: 0...5, using: &random)))
        },
        Operation(name: "remove some") { queue, context, random in try await queue.remove(context.some(&random)) },
        Operation(name: "enqueue at an index") { queue, context, random in
            try await queue.enqueue(context.requests(2), at: Int.random(in: 0...context.ids.count, using: &random))
        },
        Operation(name: "move one") { queue, context, random in
            guard let id = context.ids.randomElement(using: &random) else { return }
            try await queue.move(id, to: .index(Int.random(in: 0..<context.ids.count, using: &random)))
        },
        Operation(name: "run some now") { queue, context, random in try await queue.run(.sessions(context.some(&random))) },
        Operation(name: "pause all") { queue, _, _ in try await queue.pause(.all) },
        Operation(name: "resume all") { queue, _, _ in try await queue.resume(.all) },
        Operation(name: "hold some") { queue, context, random in try await queue.hold(.sessions(context.some(&random))) },
        Operation(name: "release all") { queue, _, _ in try await queue.release(.all) },
        Operation(name: "stop some") { queue, context, random in try await queue.stop(.sessions(context.some(&random))) },
        Operation(name: "cancel some") { queue, context, random in try await queue.cancel(.sessions(context.some(&random))) },
        Operation(name: "retry all") { queue, _, _ in try await queue.retry(.all) },
        Operation(name: "start") { queue, _, _ in try await queue.start() },
        Operation(name: "stop") { queue, _, _ in try await queue.stop() },
    ]

    @Test(arguments: 1...8) func indicesAreRightForEveryObserver(seed: UInt64) async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let delegate = RecordingDelegate()
        queue.setDelegate(delegate)
        let first = Task { [events = queue.events] in await OrderReplica.follow(events) }
        let second = Task { [events = queue.events(since: queue.revision)] in await OrderReplica.follow(events) }
        var random = SplitMix64(seed: seed)
        let file = try fixture.folder.file("1", size: 100)
        var expected: [[SessionID]] = []
        for _ in 0..<60 {
            let before = await queue.sessionIDs()
            let context = Context(ids: before, file: file)
            guard let operation = Self.operations.randomElement(using: &random) else { continue }
            try await operation.perform(queue, context, &random)
            let after = await queue.sessionIDs()
            if after != before { expected.append(after) }
        }
        await queue.shutdown()
        await queue.delegateIsDone()
        let seen = [
            ("first", await first.value), ("second", await second.value),
            ("delegate", await delegate.kinds.reduce(into: OrderReplica()) { $0.take($1) }),
        ]
        for (name, replica) in seen {
            #expect(replica.problems.isEmpty, "\(name), seed \(seed)")
            #expect(replica.orders == expected, "\(name), seed \(seed)")
            #expect(replica.kinds == seen[0].1.kinds, "\(name), seed \(seed)")
        }
    }
}
