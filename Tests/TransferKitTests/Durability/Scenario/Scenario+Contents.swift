import Foundation
import TransferCore
import TransferKit
import TransportTesting

extension Scenario {
    // MARK: Unfinished uploads on a server

    static let unfinishedUploads = [
        Step("save account a") { try await $0.queue.save($0.account("a")) },
        Step("set the session limit") { try await $0.queue.setMaxConcurrentSessions(9) },
        Step("enqueue sessions") { stage in
            _ = try await stage.queue.enqueue((1...7).map { try stage.upload("d\($0)") })
        },
        Step("start the queue") { stage in
            for number in 1...7 { stage.server.close("d\(number)") }
            stage.server.refuseRemovals(true)
            try await stage.queue.start()
            for number in 1...7 { try await stage.server.reached("d\(number)") }
        },
        Step("cancel while the server can't remove the upload") { stage in
            try await stage.queue.cancel(Stage.id("d1"), discarding: true)
            try await stage.waitForStoppingRuns()
            try await stage.server.removalRefused.wait()
            await stage.clock.waitForSleep(of: .seconds(10))
        },
        Step("remove the upload later") { stage in
            stage.server.refuseRemovals(false)
            stage.clock.advance(by: .seconds(10))
            try await stage.server.removalAccepted.wait()
        },
        Step("cancel and keep the sent content") { stage in
            try await stage.queue.cancel(Stage.id("d2"))
            try await stage.waitForStoppingRuns()
        },
        Step("retry, and resume from the kept content") { stage in
            stage.server.close("d2")
            try await stage.queue.retry(Stage.id("d2"))
            try await stage.server.reached("d2")
        },
        Step("remove a running session") { try await $0.queue.remove(Stage.id("d3")) },
        Step("cancel another session and keep the sent content") { stage in
            try await stage.queue.cancel(Stage.id("d7"))
            try await stage.waitForStoppingRuns()
        },
        Step("remove the session and its kept content") { stage in
            try await stage.queue.remove(Stage.id("d7"))
            try await stage.server.waitUntilGone(Stage.id("d7"))
        },
        Step("cancel a group of sessions") { stage in
            _ = try await stage.queue.apply(.cancel(discarding: true), to: .sessions([Stage.id("d2"), Stage.id("d4")]))
            try await stage.waitForStoppingRuns()
        },
        Step("pause a running session") { stage in
            try await stage.queue.pause(Stage.id("d5"))
            try await stage.waitForStoppingRuns()
        },
        Step("cancel a paused session") { try await $0.queue.cancel(Stage.id("d5"), discarding: true) },
        Step("delete the account with its sessions") { try await $0.queue.deleteAccount("a", cascades: true) },
        Step("wait until all unfinished uploads are removed") { await $0.queue.waitUntilIdle() },
    ]

    // MARK: Items

    static let additions = [
        Step("save account a") { try await $0.queue.save($0.account("a")) },
        Step("set the session limit") { try await $0.queue.setMaxConcurrentSessions(2) },
        Step("enqueue sessions") { _ = try await $0.queue.enqueue([try $0.upload("i1"), try $0.upload("i2")]) },
        Step("enqueue a held session") { _ = try await $0.queue.enqueue(try $0.upload("i3"), held: true) },
        Step("add an item to a waiting session") { try await $0.queue.addItems([$0.item("i1-more")], to: .id(Stage.id("i1"))) },
        Step("add several items to a held session") { stage in
            try await stage.queue.addItems((1...5).map { try stage.item("i3-\($0)") }, to: .id(Stage.id("i3")))
        },
        Step("add a folder at the end") { try await $0.queue.addItems([$0.folder("i3-folder", 3)], to: .id(Stage.id("i3"))) },
        Step("add an item after the folder") { try await $0.queue.addItems([$0.item("i3-last")], to: .id(Stage.id("i3"))) },
        Step("start the queue") { stage in
            for name in ["i1", "i1-more", "i2", "i2-late", "i2-later"] { stage.server.close(name) }
            try await stage.queue.start()
            for name in ["i1", "i2"] { try await stage.server.reached(name) }
        },
        Step("add an item to a running session") { try await $0.queue.addItems([$0.item("i2-late")], to: .id(Stage.id("i2"))) },
        Step("add a folder to a running session") { try await $0.queue.addItems([$0.folder("i2-folder", 2)], to: .id(Stage.id("i2"))) },
        Step("complete the first files") { stage in
            stage.server.open("i1")
            try await stage.server.reached("i1-more")
        },
        Step("complete all files of a session") { stage in
            stage.server.open("i1-more")
            try await stage.wait(for: "i1", .completed)
        },
        Step("expand the added folder", isGradual: true) { stage in
            stage.server.open("i2")
            stage.server.open("i2-late")
            try await stage.wait(for: "i2", .completed)
        },
        Step("release the held session", isGradual: true) { stage in
            try await stage.queue.release(Stage.id("i3"))
            await stage.queue.waitUntilIdle()
        },
    ]

    static let folderReading = [
        Step("save account a") { try await $0.queue.save($0.account("a")) },
        Step("enqueue a folder") { stage in
            _ = try await stage.queue.enqueue(try stage.request("f1", [try stage.folder("f1-tree", 12), try stage.item("f1-after")]))
        },
        Step("enqueue folders and files") { stage in
            let items = [try stage.item("f2-before"), try stage.folder("f2-tree", 5), try stage.folder("f2-more", 5)]
            _ = try await stage.queue.enqueue(try stage.request("f2", items))
        },
        Step("expand the folder of the first session", isGradual: true) { stage in
            for name in ["f1-after", "f2-before"] { stage.server.close(name) }
            try await stage.queue.start()
            try await stage.server.reached("f1-after")
        },
        Step("complete the first session", isGradual: true) { stage in
            stage.server.open("f1-after")
            try await stage.server.reached("f2-before")
            // The next snapshots contain the session's number of files, so the queue must have read all folders.
            try await stage.wait { sessions in sessions.contains { $0.name == "f2" && $0.statistics.bytesTotal != nil } }
        },
        Step("hold the second session while it runs") { stage in
            try await stage.queue.hold(Stage.id("f2"))
            try await stage.waitForStoppingRuns()
        },
        Step("remove the first session") { try await $0.queue.remove(Stage.id("f1")) },
        Step("release and complete the second session", isGradual: true) { stage in
            stage.server.open("f2-before")
            try await stage.queue.release(Stage.id("f2"))
            try await stage.wait(for: "f2", .completed)
        },
    ]

    static let spooled = [
        Step("save account a") { try await $0.queue.save($0.account("a")) },
        Step("set the session limit") { try await $0.queue.setMaxConcurrentSessions(5) },
        Step("enqueue data items") { stage in
            _ = try await stage.queue.enqueue(
                (1...4).map { try stage.request("b\($0)", [stage.dataItem("b\($0)"), stage.dataItem("b\($0)-more")]) })
        },
        Step("enqueue a data item with a deduplication key") { _ = try await $0.queue.enqueue($0.dataItemWithKey("b5")) },
        Step("enqueue a data item with the same deduplication key") { _ = try await $0.queue.enqueue($0.dataItemWithKey("b6")) },
        Step("add a data item") { try await $0.queue.addItems([$0.dataItem("b1-late")], to: .id(Stage.id("b1"))) },
        Step("remove a waiting session") { try await $0.queue.remove(Stage.id("b2")) },
        Step("start the queue") { stage in
            for name in ["b1", "b1-more", "b1-late", "b3", "b3-more", "b4", "b4-more", "b5"] { stage.server.close(name) }
            try await stage.queue.start()
            for name in ["b1", "b3", "b4", "b5"] { try await stage.server.reached(name) }
        },
        Step("complete the first item") { stage in
            stage.server.open("b1")
            try await stage.server.reached("b1-more")
        },
        Step("remove a running session") { try await $0.queue.remove(Stage.id("b3")) },
        Step("cancel a running session") { stage in
            try await stage.queue.cancel(Stage.id("b4"), discarding: true)
            try await stage.waitForStoppingRuns()
        },
        Step("complete the remaining sessions", isGradual: true) { stage in
            for name in ["b1-more", "b1-late", "b5"] { stage.server.open(name) }
            await stage.queue.waitUntilIdle()
        },
    ]

    static let strictOrder = [
        Step("save account a") { try await $0.queue.save($0.account("a")) },
        Step("enqueue sessions") { stage in _ = try await stage.queue.enqueue((1...6).map { try stage.upload("o\($0)") }) },
        Step("start the queue") { stage in
            for number in 1...6 { stage.server.close("o\(number)") }
            try await stage.queue.start()
            try await stage.server.reached("o1")
        },
        Step("run o4, displacing the running session o1") { stage in
            try await stage.queue.run(Stage.id("o4"))
            try await stage.server.reached("o4")
        },
        Step("complete o4, and restore the displaced session o1") { stage in
            stage.server.close("o1")
            stage.server.open("o4")
            try await stage.wait(for: "o4", .completed)
            try await stage.server.reached("o1")
        },
        Step("move another session before the running one") { try await $0.queue.move(Stage.id("o6"), to: .front) },
        Step("hold the running session o1; the first session starts") { stage in
            try await stage.queue.hold(Stage.id("o1"))
            try await stage.server.reached("o6")
        },
        Step("fail the running session; the held session o1 now blocks the other sessions") { stage in
            stage.server.open("o6", failingWith: TransferError(.permanent, .rejected, "The server rejected the file."))
            try await stage.wait(for: "o6", .failed)
        },
        Step("cancel the blocking session") { stage in
            try await stage.queue.cancel(Stage.id("o1"), discarding: true)
            try await stage.server.reached("o2")
        },
        Step("stop the queue, interrupting its runs") { _ = try await $0.queue.stopAndWait() },
        Step("retry the failed session") { try await $0.queue.retry(Stage.id("o6")) },
        Step("start the queue again", isGradual: true) { stage in
            for number in 1...6 { stage.server.open("o\(number)") }
            try await stage.queue.start()
            await stage.queue.waitUntilIdle()
        },
    ]

    // MARK: Automatic actions of the queue

    static let automaticActions = [
        Step("save account a") { try await $0.queue.save($0.account("a")) },
        Step("enqueue sessions") { stage in
            // The queue deletes a data item's bytes once they are uploaded. So r2, which runs twice, has no data item.
            _ = try await stage.queue.enqueue(
                (1...5).map { try stage.request("r\($0)", [stage.item("r\($0)")] + ($0 == 2 ? [] : [stage.dataItem("r\($0)-data")])) })
        },
        Step("enqueue a dependent of the first session") { stage in
            var request = try stage.upload("r6")
            request.dependency = .after(Stage.id("r1"))
            _ = try await stage.queue.enqueue(request, held: true)
        },
        Step("start the queue") { stage in
            for number in 1...5 { stage.server.close("r\(number)") }
            try await stage.queue.start()
            try await stage.server.reached("r1")
        },
        Step("complete the first session") { stage in
            stage.server.open("r1")
            try await stage.wait(for: "r1", .completed)
            try await stage.server.reached("r2")
        },
        Step("complete the second session") { stage in
            stage.server.open("r2")
            try await stage.wait(for: "r2", .completed)
            try await stage.server.reached("r3")
        },
        Step("complete the third session, and remove the first one") { stage in
            stage.server.open("r3")
            try await stage.wait { sessions in !sessions.contains { $0.name == "r1" } }
            try await stage.server.reached("r4")
        },
        Step("run a completed session again") { stage in
            stage.server.close("r2")
            try await stage.queue.run(Stage.id("r2"), again: true)
            try await stage.server.reached("r2")
        },
        Step("complete r2 again, and restore the displaced session r4") { stage in
            stage.server.close("r4")
            stage.server.open("r2")
            try await stage.wait(for: "r2", .completed)
            try await stage.server.reached("r4")
        },
        Step("drain until the deadline passes") { stage in
            let events = stage.queue.events
            try await stage.queue.stop(.drain, deadline: .seconds(10))
            stage.clock.advance(by: .seconds(10))
            // Any call makes the queue check the time.
            _ = await stage.queue.status()
            for await event in events { if case .queueStopped = event.kind { break } }
        },
        Step("edit the account of an interrupted session") { try await $0.queue.save($0.account("a", hosts: ["a", "b"])) },
        Step("release all sessions") { _ = try await $0.queue.apply(.release, to: .all) },
        Step("start the queue again") { stage in
            for number in 4...6 { stage.server.close("r\(number)") }
            try await stage.queue.start()
            try await stage.server.reached("r4")
        },
    ]
}

extension Stage {
    /// Returns a request for one data item, always with the same deduplication key.
    fileprivate func dataItemWithKey(_ name: String) throws -> SessionRequest {
        var request = try request(name, [dataItem(name)])
        request.deduplicationKey = "bytes"
        return request
    }
}
