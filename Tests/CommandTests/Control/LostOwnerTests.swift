import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferKit

/// If the owner exits before answering, the command is retried; completed changes are not repeated.
@Suite(.serialized) struct LostOwnerTests {
    @Test(
        arguments: [
            ("remove", "waiting", nil), ("cancel", "waiting", "cancelled"), ("hold", "waiting", "held"), ("pause", "waiting", "held"),
            ("release", "held", "waiting"), ("retry", "cancelled", "waiting"), ("now", "waiting", "waiting"),
            ("yield", "waiting", "waiting"),
        ] as [(String, String, String?)])
    func retriesOperations(operation: String, before: String, after: String?) async throws {
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

    /// An operation that the session's state forbids is rejected as usual.
    @Test func rejectsOperationInWrongState() async throws {
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
    func retriesAccountChanges(command: [String], word: String, after: [String]) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let result = try await result(of: ["account"] + command, in: program, doneWith: word)
        #expect(result.status == 0, "\(result.testDescription)")
        #expect(try await program.succeed("account", "list", "--json").objects().map { $0["name"] as? String } == after)
    }

    @Test func rejectsExistingAccount() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let result = try await result(of: ["account", "add", "studio", "https://two.example/"], in: program, doneWith: "replace")
        #expect(result.status == 4, "\(result.testDescription)")
    }

    /// An owner that exits between two requests counts as gone, however it exits.
    @Test(
        arguments: [
            ["list", "--json"], ["show", "ID", "--json"], ["why", "ID"], ["watch"], ["now", "ID"], ["queue", "status"],
            ["account", "list"],
        ], ExitingOwner.Remains.allCases)
    func completesCommandsAfterOwnerExits(command: [String], remains: ExitingOwner.Remains) async throws {
        let (program, id) = try await programWithSession()
        let owner = try await ExitingOwner(program.store)
        let running = try program.start(command.map { $0 == "ID" ? id : $0 })
        // Its first request asks for the owner.
        try await owner.serve(1, leaving: remains)
        let result = await running.result()
        #expect(result.status == 0 && !result.lines.isEmpty && result.diagnostics == "", "\(result.testDescription)")
    }

    /// An agent that exits before it receives the stop request counts as stopped.
    @Test(arguments: ExitingOwner.Remains.allCases, 1...3) func acceptsAgentThatExitsFirst(remains: ExitingOwner.Remains, after count: Int)
        async throws
    {
        let (program, _) = try await programWithSession()
        let agent = try await ExitingOwner(program.store, as: .agent)
        let running = try program.start(["agent", "stop", "--json"])
        try await agent.serve(count, leaving: remains)
        let result = await running.result()
        #expect(result.status == 0 && result.lines == ["{\"running\":false}"], "\(result.testDescription)")
    }

    /// Each owner exits between the two requests. The events in between come from the log, and the command ends only when it has printed them.
    @Test(.timeLimit(.minutes(10))) func followsOwnersWithoutEvents() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let id = try #require(SessionID(try await program.succeed("add", "studio", "a").lines[0]))
        var owner = try await ExitingOwner(program.store)
        let watch = try program.start(["watch", "--follow", "--json"])
        var lines = watch.lines.makeAsyncIterator()
        for round in 1...3 {
            if round == 2 { try await owner.queue.release(id) } else { try await owner.queue.hold(id) }
            // The owner's queue is closed before the client notices the lost connection.
            try await owner.serve(until: "events")
            while let line = await lines.next() {
                if try CommandResult.object(line)["event"] as? String == "changed" { break }
            }
            if round < 3 { owner = try await Self.nextOwner(program) }
        }
        watch.send(SIGTERM)
        _ = await watch.result()
    }

    /// Retries while another command has the queue open to read the log.
    private static func nextOwner(_ program: TransferQ) async throws -> ExitingOwner {
        while true {
            do { return try await ExitingOwner(program.store) } catch let error as QueueError where error.code == .storageInUse { continue }
        }
    }

    private func programWithSession() async throws -> (TransferQ, id: String) {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        return (program, try await program.succeed("add", "studio", "a").lines[0])
    }

    private func result(of command: [String], in program: TransferQ, doneWith word: String) async throws -> CommandResult {
        let owner = try await ExitingOwner(program.store)
        let running = try program.start(command)
        try await owner.serve(until: word)
        return await running.result()
    }
}
