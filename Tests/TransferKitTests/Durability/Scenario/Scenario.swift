import Foundation
import TransferCore
import TransferKit
import TransportTesting

/// Sequences of operations on a queue. Each one changes the visible state once, and the queue is at rest afterwards.
enum Scenario: String, CaseIterable, Sendable {
    /// On a stopped queue: accounts, limits, enqueueing, order, holding, updates, removal.
    case arranging
    /// On a running queue: displacement, pauses, all kinds of ends, retries, blocks, stops.
    case running
    /// The remains on a server, and their removal.
    case discarding
    /// Items that are added to waiting, held and running sessions.
    case addingItems
    /// Folders, which are read when their session first runs.
    case folders
    /// Data items, which are kept until they have arrived.
    case spooling
    /// A strict queue.
    case strict
    /// Automatic actions: the queue removes expired completed sessions, and ends a drain at its deadline.
    case retiring

    struct Step: Sendable {
        let name: String
        /// Whether sessions change one after another.
        let isGradual: Bool
        let body: @Sendable (Stage) async throws -> Void

        init(_ name: String, isGradual: Bool = false, _ body: @escaping @Sendable (Stage) async throws -> Void) {
            self.name = name
            self.isGradual = isGradual
            self.body = body
        }
    }

    var steps: [Step] {
        switch self {
        case .arranging: Self.preparing + Self.ordering + Self.grouping
        case .running: Self.displacing + Self.ending + Self.stopping
        case .discarding: Self.leavings
        case .addingItems: Self.additions
        case .folders: Self.folderReading
        case .spooling: Self.spooled
        case .strict: Self.strictly
        case .retiring: Self.leftToItself
        }
    }

    var ordering: QueueOrdering { self == .strict ? .strict : .inOrder }
    var retention: Retention { self == .retiring ? .count(2) : .keepAll }

    // MARK: A stopped queue

    /// The sessions of ``arranging``.
    static let arrangedNames = ["one", "many1", "many2", "many3", "many4", "many5", "first", "held", "unique", "double", "later"]

    private static let preparing = [
        Step("save a") { try await $0.queue.save($0.account("a")) },
        Step("save b") { try await $0.queue.save($0.account("b")) },
        Step("edit b") { try await $0.queue.save($0.account("b", hosts: ["b", "c"])) },
        Step("limit of the queue") { try await $0.queue.setSessionLimit(3) },
        Step("limit of an account") { try await $0.queue.setSessionLimit(2, account: "b") },
        Step("rate of the queue") { try await $0.queue.setRateLimit(1_000_000_000) },
        Step("rate of an account") { try await $0.queue.setRateLimit(500_000_000, account: "a") },
        Step("enqueue one") { _ = try await $0.queue.enqueue($0.upload("one")) },
        Step("enqueue many") { stage in
            _ = try await stage.queue.enqueue((1...5).map { try stage.upload("many\($0)", to: $0.isMultiple(of: 2) ? "b" : "a") })
        },
        Step("enqueue at an index") { _ = try await $0.queue.enqueue($0.upload("first"), at: 0) },
        Step("enqueue held") { _ = try await $0.queue.enqueue($0.upload("held"), held: true) },
        Step("enqueue with a deduplication key") { stage in
            var request = try stage.upload("unique")
            request.deduplicationKey = "key"
            _ = try await stage.queue.enqueue(request)
        },
        Step("enqueue with the same deduplication key") { stage in
            var request = try stage.upload("double")
            request.deduplicationKey = "key"
            _ = try await stage.queue.enqueue(request)
        },
        Step("enqueue after another, not before a time") { stage in
            var request = try stage.upload("later")
            request.dependency = .after(Stage.id("one"))
            request.notBefore = Date(timeIntervalSince1970: 2_000_000)
            request.tags = ["night", "bulk"]
            request.options = SessionOptions(metadata: ["reel": "7"], retry: RetryPolicy(maximumAttempts: 3))
            _ = try await stage.queue.enqueue(request)
        },
        Step("update") { stage in
            try await stage.queue.update(
                Stage.id("many1"),
                SessionUpdate(
                    rateLimit: .bytesPerSecond(100_000_000), tags: ["bulk"], context: Data("9".utf8), retry: RetryPolicy(maximumAttempts: 2)
                ))
        },
    ]

    private static let ordering =
        [
            Step("move to the front") { try await $0.queue.move(Stage.id("many3"), to: .front) },
            Step("move to the end") { try await $0.queue.move(Stage.id("first"), to: .end) },
            Step("move before") { try await $0.queue.move(Stage.id("many5"), to: .before(Stage.id("many1"))) },
            Step("move to an index") { try await $0.queue.move(.at(2), to: .index(4)) },
        ]
        // Twenty-two halvings of the distance between two ranks. The last ones renumber the neighbours.
        + (0..<22).map { count in
            Step("squeeze \(count)") { stage in
                let name = count.isMultiple(of: 2) ? "many2" : "many4"
                try await stage.queue.move(Stage.id(name), to: .after(Stage.id("many3")))
            }
        } + [
            Step("run next") { try await $0.queue.runNext(Stage.id("many5")) },
            Step("run on a stopped queue") { try await $0.queue.run(Stage.id("later")) },
        ]

    private static let grouping = [
        Step("pause a waiting one") { _ = try await $0.queue.pause(Stage.id("many1")) },
        Step("hold") { try await $0.queue.hold(Stage.id("many2")) },
        Step("release") { try await $0.queue.release(Stage.id("many2")) },
        Step("cancel") { try await $0.queue.cancel(Stage.id("many4")) },
        Step("retry") { try await $0.queue.retry(Stage.id("many4")) },
        Step("hold a tag") { _ = try await $0.queue.apply(.hold, to: .tag("bulk")) },
        Step("hold an account") { _ = try await $0.queue.apply(.hold, to: .account("b")) },
        Step("release all") { _ = try await $0.queue.apply(.release, to: .all) },
        Step("move a group") { try await $0.queue.apply(.move(to: .index(1)), to: .sessions([Stage.id("many5"), Stage.id("one")])) },
        Step("cancel a group") {
            _ = try await $0.queue.apply(.cancel(keepsPartial: true), to: .sessions([Stage.id("many1"), Stage.id("many3")]))
        },
        Step("retry a group") { _ = try await $0.queue.apply(.retry, to: .all) },
        Step("remove with dependents") { try await $0.queue.remove(Stage.id("one"), isForced: true) },
        Step("remove a group") { try await $0.queue.apply(.remove(), to: .sessions([Stage.id("held"), Stage.id("first")])) },
        Step("no limit of the queue") { try await $0.queue.setSessionLimit(nil) },
        Step("delete b with its sessions") { try await $0.queue.deleteAccount("b", cascades: true) },
    ]

    // MARK: A running queue

    private static let names = ["s1", "s2", "s3", "s4", "s5"]
    private static let others = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"]

    private static let displacing = [
        Step("save a") { try await $0.queue.save($0.account("a")) },
        Step("save b") { try await $0.queue.save($0.account("b")) },
        Step("limit") { try await $0.queue.setSessionLimit(2) },
        Step("enqueue") { stage in
            _ = try await stage.queue.enqueue(names.map { try stage.upload($0) } + others.map { try stage.upload($0) })
        },
        Step("start") { stage in
            for name in names + others { stage.server.close(name) }
            try await stage.queue.start()
            for name in ["s1", "s2"] { try await stage.server.reached(name) }
        },
        Step("run, which displaces") { stage in
            try await stage.queue.run(Stage.id("s4"))
            try await stage.server.reached("s4")
        },
        Step("run, which displaces the preemptor") { stage in
            try await stage.queue.run(Stage.id("s5"))
            try await stage.server.reached("s5")
        },
        Step("complete, and restore the displaced session") { stage in
            stage.server.close("s4")
            stage.server.open("s5")
            try await stage.wait(for: "s5", .completed)
            try await stage.server.reached("s4")
        },
        Step("pause the preemptor") { stage in
            _ = try await stage.queue.pause(Stage.id("s4"))
            try await stage.settle()
        },
        Step("resume it") { stage in
            stage.server.close("s4")
            try await stage.queue.resume(Stage.id("s4"))
            try await stage.server.reached("s4")
        },
        Step("hold the preemptor, and restore the displaced session") { stage in
            stage.server.close("s2")
            try await stage.queue.hold(Stage.id("s4"))
            try await stage.settle()
            try await stage.server.reached("s2")
        },
        Step("stop one") { stage in
            stage.server.close("s3")
            try await stage.queue.yield(Stage.id("s2"))
            try await stage.server.reached("s3")
        },
        Step("run many") { stage in
            stage.server.close("s2")
            try await stage.queue.setSessionLimit(20)
            for name in others + ["s2"] { try await stage.server.reached(name) }
        },
    ]

    private static let ending = [
        Step("complete") { stage in
            stage.server.open("t1")
            try await stage.wait(for: "t1", .completed)
        },
        Step("fail") { stage in
            stage.server.open("t2", failingWith: TransferError(.permanent, .rejected, "The server refused it."))
            try await stage.wait(for: "t2", .failed)
        },
        Step("retry") { stage in
            stage.server.close("t2")
            try await stage.queue.retry(Stage.id("t2"))
            try await stage.server.reached("t2")
        },
        Step("wait for the next attempt") { stage in
            stage.server.open(
                "t3", failingWith: TransferError(.transient, .serverError, "The server is busy.", retryAfter: .seconds(30)))
            try await stage.wait { $0.contains { if case .retry = $0.why { true } else { false } } }
        },
        Step("perform the next attempt") { stage in
            stage.server.close("t3")
            stage.clock.advance(by: .seconds(30))
            // Any call makes the queue check the time.
            _ = await stage.queue.status()
            try await stage.server.reached("t3")
        },
        Step("restart a file") { stage in
            try stage.server.lose(Stage.id("t4"))
            stage.server.open("t4", failingWith: TransferError(.resumeLost, .uploadGone, "It is gone."))
            try await stage.wait(for: "t4", .completed)
        },
        Step("run it again") { stage in
            stage.server.close("t4")
            try await stage.queue.run(Stage.id("t4"), again: true)
            try await stage.server.reached("t4")
        },
        Step("enqueue to b") { stage in
            stage.server.close("t10")
            _ = try await stage.queue.enqueue(stage.upload("t10", to: "b"))
            try await stage.server.reached("t10")
        },
        Step("block the account") { stage in
            stage.server.open("t10", failingWith: TransferError(.credentials, .credentialsRejected, "Who are you?"))
            let queue = stage.queue
            var events = queue.events.makeAsyncIterator()
            while await queue.account("b")?.blockingError == nil { _ = await events.next() }
        },
        Step("unblock it") { stage in
            stage.server.close("t10")
            try await stage.queue.unblockAccount("b")
            try await stage.server.reached("t10")
        },
        Step("hold an account") { stage in
            _ = try await stage.queue.apply(.hold, to: .account("b"))
            try await stage.settle()
        },
    ]

    private static let stopping = [
        Step("drain") { try await $0.queue.stop(.drain) },
        Step("start during the drain") { try await $0.queue.start() },
        Step("interrupt") { _ = try await $0.queue.stopAndWait() },
        Step("release") { try await $0.queue.apply(.release, to: .all) },
        Step("start again", isGradual: true) { stage in
            for name in names + others + ["t10"] { stage.server.open(name) }
            try await stage.queue.start()
            await stage.queue.waitUntilIdle()
        },
    ]
}
