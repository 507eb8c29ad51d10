import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferKit

/// A command whose owner ended before it answered is done by the next one, and what is done already is done.
@Suite(.serialized) struct LostOwnerTests {
    @Test(
        arguments: [
            ("remove", "waiting", nil), ("cancel", "waiting", "cancelled"), ("hold", "waiting", "held"), ("pause", "waiting", "held"),
            ("release", "held", "waiting"), ("retry", "cancelled", "waiting"), ("now", "waiting", "waiting"),
            ("stop", "waiting", "waiting"),
        ] as [(String, String, String?)])
    func operations(operation: String, before: String, after: String?) async throws {
        for count in [1, 2] {
            let program = try TransferQ()
            try await program.succeed("account", "add", "studio", "https://one.example/")
            try program.folder.file("a", size: 1)
            let ids = try await program.run(["add", "studio"] + Array(repeating: "a", count: count) + ["--each"]).lines
            if before != "waiting" { _ = try await program.run([before == "held" ? "hold" : "cancel"] + ids) }
            let result = try await result(of: [operation] + ids, in: program, doneWith: count == 1 ? "apply" : "applyToStaged")
            #expect(result.status == 0, "\(result.testDescription)")
            #expect(result.lines == ids)
            let states = try await program.succeed("list", "--json").objects().map { $0["state"] as? String }
            #expect(states == (after == nil ? [] : Array(repeating: after, count: count)))
        }
    }

    /// What it was not asked for before is refused as ever.
    @Test func whatDoesNotFit() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let id = try await program.succeed("add", "studio", "a").lines[0]
        try await program.succeed("cancel", id)
        let result = try await result(of: ["hold", id], in: program, doneWith: "apply")
        #expect(result.status == 4 && result.output == "" && result.diagnostics.contains("is cancelled"), "\(result.testDescription)")
    }

    @Test(
        arguments: [
            (["add", "new", "https://two.example/", "--json"], "replace", ["new", "studio"]),
            (["edit", "studio", "--rate", "1M", "--json"], "replace", ["studio"]), (["remove", "studio"], "deleteAccount", []),
            (["unblock", "studio"], "unblockAccount", ["studio"]),
        ] as [([String], String, [String])])
    func accounts(command: [String], word: String, after: [String]) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let result = try await result(of: ["account"] + command, in: program, doneWith: word)
        #expect(result.status == 0, "\(result.testDescription)")
        #expect(try await program.succeed("account", "list", "--json").objects().map { $0["name"] as? String } == after)
    }

    @Test func anAccountThatWasThereBefore() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let result = try await result(of: ["account", "add", "studio", "https://two.example/"], in: program, doneWith: "replace")
        #expect(result.status == 4, "\(result.testDescription)")
    }

    /// An owner that is gone between two questions is no longer there, however it went.
    @Test(
        arguments: [
            ["list", "--json"], ["show", "ID", "--json"], ["why", "ID"], ["watch"], ["now", "ID"], ["queue", "status"],
            ["account", "list"],
        ], LosingOwner.Remains.allCases)
    func whatIsAskedLater(command: [String], remains: LosingOwner.Remains) async throws {
        let (program, id) = try await programWithSession()
        let owner = try await LosingOwner(program.store)
        let running = try program.start(command.map { $0 == "ID" ? id : $0 })
        // What it asks first is who the owner is.
        try await owner.serve(1, leaving: remains)
        let result = await running.result()
        #expect(result.status == 0 && !result.lines.isEmpty && result.diagnostics == "", "\(result.testDescription)")
    }

    /// An agent that is gone before it could be told to go is stopped.
    @Test(arguments: LosingOwner.Remains.allCases, 1...3) func anAgentThatStopsByItself(remains: LosingOwner.Remains, after count: Int)
        async throws
    {
        let (program, _) = try await programWithSession()
        let agent = try await LosingOwner(program.store, as: .agent)
        let running = try program.start(["agent", "stop", "--json"])
        try await agent.serve(count, leaving: remains)
        let result = await running.result()
        #expect(result.status == 0 && result.lines == ["{\"running\":false}"], "\(result.testDescription)")
    }

    /// Owners of which each ends between the two questions: what happened meanwhile is in the log, and told without another reason.
    @Test(.timeLimit(.minutes(10))) func followingOwnersThatTellNothing() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let id = try #require(SessionID(try await program.succeed("add", "studio", "a").lines[0]))
        var owner = try await LosingOwner(program.store)
        let watch = try program.start(["watch", "--follow", "--json"])
        var lines = watch.lines.makeAsyncIterator()
        for round in 1...3 {
            if round == 2 { try await owner.queue.release(id) } else { try await owner.queue.hold(id) }
            // Its queue is closed before the one who asks knows that no answer comes.
            try await owner.serve(until: "events")
            while let line = await lines.next() {
                if try CommandResult.object(line)["event"] as? String == "changed" { break }
            }
            if round < 3 { owner = try await Self.nextOwner(program) }
        }
        watch.send(SIGTERM)
        _ = await watch.result()
    }

    /// Whoever reads the log just now has the queue to itself.
    private static func nextOwner(_ program: TransferQ) async throws -> LosingOwner {
        while true {
            do { return try await LosingOwner(program.store) } catch let error as QueueError where error.code == .storageInUse { continue }
        }
    }

    private func programWithSession() async throws -> (TransferQ, id: String) {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        return (program, try await program.succeed("add", "studio", "a").lines[0])
    }

    private func result(of command: [String], in program: TransferQ, doneWith word: String) async throws -> CommandResult {
        let owner = try await LosingOwner(program.store)
        let running = try program.start(command)
        try await owner.serve(until: word)
        return await running.result()
    }
}
