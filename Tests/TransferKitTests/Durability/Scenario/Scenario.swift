import Foundation
import TransferCore
import TransferKit
import TransportTesting

/// A sequence of steps on a queue. Each step changes the visible state, and the next step begins only after this change.
enum Scenario: String, CaseIterable, Sendable {
    /// Changes to a stopped queue: accounts, limits, enqueueing, order, holding, updates, removal.
    case arranging
    /// Events of a running queue: displacement, pauses, completion, failure, retries, blocked accounts, stops.
    case running
    /// Unfinished uploads on a server, and their removal.
    case discarding
    /// Items that are added to waiting, held and running sessions.
    case addingItems
    /// Folders, which the queue expands when their session first runs.
    case folders
    /// Data items, whose bytes the queue keeps until they are uploaded.
    case spooling
    /// A queue with strict ordering.
    case strict
    /// Automatic actions: the queue removes expired completed sessions, and ends a drain at its deadline.
    case retiring

    struct Step: Sendable {
        let name: String
        /// Whether the sessions change in several transactions, so that a kill may leave an intermediate state.
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
        case .discarding: Self.unfinishedUploads
        case .addingItems: Self.additions
        case .folders: Self.folderReading
        case .spooling: Self.spooled
        case .strict: Self.strictOrder
        case .retiring: Self.automaticActions
        }
    }

    var ordering: QueueOrdering { self == .strict ? .strict : .inOrder }
    var retention: Retention { self == .retiring ? .count(2) : .keepAll }

    // MARK: A stopped queue

    static let arrangedNames = ["one", "many1", "many2", "many3", "many4", "many5", "first", "held", "unique", "double", "later"]

    private static let preparing = [
        Step("save account a") { try await $0.queue.save($0.account("a")) },
        Step("save account b") { try await $0.queue.save($0.account("b")) },
        Step("edit account b") { try await $0.queue.save($0.account("b", hosts: ["b", "c"])) },
        Step("set the limit of the queue") { try await $0.queue.setMaxConcurrentSessions(3) },
        Step("set the limit of an account") { try await $0.queue.setMaxConcurrentSessions(2, account: "b") },
        Step("set the rate limit of the queue") { try await $0.queue.setRateLimit(1_000_000_000) },
        Step("set the rate limit of an account") { try await $0.queue.setRateLimit(500_000_000, account: "a") },
        Step("enqueue one session") { _ = try await $0.queue.enqueue($0.upload("one")) },
        Step("enqueue many sessions") { stage in
            _ = try await stage.queue.enqueue((1...5).map { try stage.upload("many\($0)", to: $0.isMultiple(of: 2) ? "b" : "a") })
        },
        Step("enqueue a session at an index") { _ = try await $0.queue.enqueue($0.upload("first"), at: 0) },
        Step("enqueue a held session") { _ = try await $0.queue.enqueue($0.upload("held"), held: true) },
        Step("enqueue a session with a deduplication key") { stage in
            var request = try stage.upload("unique")
            request.deduplicationKey = "key"
            _ = try await stage.queue.enqueue(request)
        },
        Step("enqueue a session with the same deduplication key") { stage in
            var request = try stage.upload("double")
            request.deduplicationKey = "key"
            _ = try await stage.queue.enqueue(request)
        },
        Step("enqueue a session with a dependency and a start time") { stage in
            var request = try stage.upload("later")
            request.dependency = .after(Stage.id("one"))
            request.notBefore = Date(timeIntervalSince1970: 2_000_000)
            request.tags = ["night", "bulk"]
            request.options = SessionOptions(metadata: ["reel": "7"], retry: RetryPolicy(maximumAttempts: 3))
            _ = try await stage.queue.enqueue(request)
        },
        Step("update a session") { stage in
            try await stage.queue.update(
                Stage.id("many1"),
                SessionUpdate(
                    rateLimit: .bytesPerSecond(100_000_000), tags: ["bulk"], context: .set(Data("9".utf8)),
                    retry: RetryPolicy(maximumAttempts: 2)
                ))
        },
        Step("update the account and start of a session") { stage in
            try await stage.queue.update(
                Stage.id("many2"),
                SessionUpdate(
                    tags: ["moved"], account: "a", notBefore: .set(Date(timeIntervalSince1970: 2_000_000)),
                    dependency: .set(.afterAny(Stage.id("one")))))
        },
        Step("update the account and start of this session again") {
            try await $0.queue.update(Stage.id("many2"), SessionUpdate(account: "b", notBefore: .remove, dependency: .remove))
        },
        Step("save a draft") { _ = try await $0.queue.save(draft: $0.request("draft", [$0.item("draft"), $0.dataItem("draft-data")])) },
        Step("change the account of a draft") { try await $0.queue.update(Stage.id("draft"), SessionUpdate(account: "b")) },
        Step("replace all items of a draft") { stage in
            let items = [
                try stage.item("draft-1"), try stage.dataItem("draft-2"), try stage.folder("draft-folder", 2), try stage.item("draft-3"),
            ]
            try await stage.queue.replaceItems(.all, with: items, in: .id(Stage.id("draft")))
        },
        Step("replace items of a draft") { stage in
            try await stage.queue.replaceItems(.at([1, 3]), with: [stage.dataItem("draft-4")], in: .id(Stage.id("draft")))
        },
        Step("save another draft") { _ = try await $0.queue.save(draft: $0.request("removed", [$0.dataItem("removed")])) },
        Step("remove a draft") { try await $0.queue.remove(Stage.id("removed")) },
        Step("enqueue a draft") { try await $0.queue.enqueue(draft: Stage.id("draft"), to: .index(2)) },
    ]

    private static let ordering =
        [
            Step("move a session to the front") { try await $0.queue.move(Stage.id("many3"), to: .front) },
            Step("move a session to the end") { try await $0.queue.move(Stage.id("first"), to: .end) },
            Step("move a session before another") { try await $0.queue.move(Stage.id("many5"), to: .before(Stage.id("many1"))) },
            Step("move a session to an index") { try await $0.queue.move(.at(2), to: .index(4)) },
        ]
        // Each of the following 22 moves halves the distance between two ranks. The last of these moves renumber the neighbours.
        + (0..<22).map { count in
            Step("move a session between two neighbours, \(count)") { stage in
                let name = count.isMultiple(of: 2) ? "many2" : "many4"
                try await stage.queue.move(Stage.id(name), to: .after(Stage.id("many3")))
            }
        } + [
            Step("run a session next") { try await $0.queue.runNext(Stage.id("many5")) },
            Step("run a session on a stopped queue") { try await $0.queue.run(Stage.id("later")) },
        ]

    private static let grouping = [
        Step("pause a waiting session") { _ = try await $0.queue.pause(Stage.id("many1")) },
        Step("hold a session") { try await $0.queue.hold(Stage.id("many2")) },
        Step("release a session") { try await $0.queue.release(Stage.id("many2")) },
        Step("cancel a session") { try await $0.queue.cancel(Stage.id("many4"), discarding: true) },
        Step("retry a session") { try await $0.queue.retry(Stage.id("many4")) },
        Step("hold the sessions with a tag") { _ = try await $0.queue.apply(.hold, to: .tag("bulk")) },
        Step("hold the sessions of an account") { _ = try await $0.queue.apply(.hold, to: .account("b")) },
        Step("release all sessions") { _ = try await $0.queue.apply(.release, to: .all) },
        Step("move a group of sessions") {
            try await $0.queue.apply(.move(to: .index(1)), to: .sessions([Stage.id("many5"), Stage.id("one")]))
        },
        Step("cancel a group of sessions") {
            _ = try await $0.queue.apply(.cancel(), to: .sessions([Stage.id("many1"), Stage.id("many3")]))
        },
        Step("retry a group of sessions") { _ = try await $0.queue.apply(.retry, to: .all) },
        Step("remove a session with dependents") { try await $0.queue.remove(Stage.id("one"), isForced: true) },
        Step("remove a group of sessions") { try await $0.queue.apply(.remove(), to: .sessions([Stage.id("held"), Stage.id("first")])) },
        Step("remove the session limit of the queue") { try await $0.queue.setMaxConcurrentSessions(nil) },
        Step("delete account b with its sessions") { try await $0.queue.deleteAccount("b", cascades: true) },
    ]

    // MARK: A running queue

    private static let names = ["s1", "s2", "s3", "s4", "s5"]
    private static let others = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"]

    private static let displacing = [
        Step("save account a") { try await $0.queue.save($0.account("a")) },
        Step("save account b") { try await $0.queue.save($0.account("b")) },
        Step("set the session limit") { try await $0.queue.setMaxConcurrentSessions(2) },
        Step("enqueue sessions") { stage in
            _ = try await stage.queue.enqueue(names.map { try stage.upload($0) } + others.map { try stage.upload($0) })
        },
        Step("start the queue") { stage in
            for name in names + others { stage.server.close(name) }
            try await stage.queue.start()
            for name in ["s1", "s2"] { try await stage.server.reached(name) }
        },
        Step("run s4, displacing a running session") { stage in
            try await stage.queue.run(Stage.id("s4"))
            try await stage.server.reached("s4")
        },
        Step("run s5, displacing the preemptor s4") { stage in
            try await stage.queue.run(Stage.id("s5"))
            try await stage.server.reached("s5")
        },
        Step("complete s5, and restore the displaced session s4") { stage in
            stage.server.close("s4")
            stage.server.open("s5")
            try await stage.wait(for: "s5", .completed)
            try await stage.server.reached("s4")
        },
        Step("pause the preemptor s4") { stage in
            _ = try await stage.queue.pause(Stage.id("s4"))
            try await stage.waitForStoppingRuns()
        },
        Step("resume the preemptor s4") { stage in
            stage.server.close("s4")
            try await stage.queue.resume(Stage.id("s4"))
            try await stage.server.reached("s4")
        },
        Step("hold the preemptor s4, and restore the displaced session") { stage in
            stage.server.close("s2")
            try await stage.queue.hold(Stage.id("s4"))
            try await stage.waitForStoppingRuns()
            try await stage.server.reached("s2")
        },
        Step("yield a running session") { stage in
            stage.server.close("s3")
            try await stage.queue.yield(Stage.id("s2"))
            try await stage.server.reached("s3")
        },
        Step("raise the limit, so that many sessions run") { stage in
            stage.server.close("s2")
            try await stage.queue.setMaxConcurrentSessions(20)
            for name in others + ["s2"] { try await stage.server.reached(name) }
        },
    ]

    private static let ending = [
        Step("complete a session") { stage in
            stage.server.open("t1")
            try await stage.wait(for: "t1", .completed)
        },
        Step("fail a session") { stage in
            stage.server.open("t2", failingWith: TransferError(.permanent, .rejected, "The server rejected the file."))
            try await stage.wait(for: "t2", .failed)
        },
        Step("retry the failed session") { stage in
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
            stage.server.open("t4", failingWith: TransferError(.resumeLost, .uploadGone, "The upload is gone."))
            try await stage.wait(for: "t4", .completed)
        },
        Step("run the session again") { stage in
            stage.server.close("t4")
            try await stage.queue.run(Stage.id("t4"), again: true)
            try await stage.server.reached("t4")
        },
        Step("enqueue a session of account b") { stage in
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
        Step("unblock the account") { stage in
            stage.server.close("t10")
            try await stage.queue.unblockAccount("b")
            try await stage.server.reached("t10")
        },
        Step("hold all sessions of account b") { stage in
            _ = try await stage.queue.apply(.hold, to: .account("b"))
            try await stage.waitForStoppingRuns()
        },
    ]

    private static let stopping = [
        Step("drain the queue") { try await $0.queue.stop(.drain) },
        Step("start the queue during the drain") { try await $0.queue.start() },
        Step("stop the queue, interrupting its runs") { _ = try await $0.queue.stopAndWait() },
        Step("release all sessions") { try await $0.queue.apply(.release, to: .all) },
        Step("start the queue again", isGradual: true) { stage in
            for name in names + others + ["t10"] { stage.server.open(name) }
            try await stage.queue.start()
            await stage.queue.waitUntilIdle()
        },
    ]
}
