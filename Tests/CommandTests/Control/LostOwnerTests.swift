import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferKit

/// If the owner exits before it responds, the command is retried; completed changes are not repeated.
@Suite(.serialized) struct LostOwnerTests {
    @Test(
        arguments: [
            ("remove", "waiting", nil), ("cancel", "waiting", "cancelled"), ("hold", "waiting", "held"), ("pause", "waiting", "held"),
            ("release", "held", "waiting"), ("retry", "cancelled", "waiting"), ("now", "waiting", "waiting"),
        ] as [(String, String, String?)])
    func retriesOperations(operation: String, before: String, after: String?) async throws {
        for count in [1, 2] {
            let program = try TransferQ()
            try await program.succeed("account", "add", "studio", "https://one.example/")
            try program.folder.file("a", size: 1)
            let ids = try await program.run(["add", "studio"] + Array(repeating: "a", count: count) + ["--each"]).lines
            if before != "waiting" { _ = try await program.run([before == "held" ? "hold" : "cancel"] + ids) }
            let result = try await result(of: [operation] + ids, in: program, ownerExitsAfter: count == 1 ? "apply" : "applyToStaged")
            #expect(result.status == 0, "\(result.testDescription)")
            #expect(result.lines == ids)
            let states = try await program.succeed("list", "--json").objects().map { $0["state"] as? String }
            #expect(states == (after == nil ? [] : Array(repeating: after, count: count)))
        }
    }

    @Test func rejectsOperationInWrongState() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let id = try await program.succeed("add", "studio", "a").lines[0]
        try await program.succeed("cancel", id)
        let result = try await result(of: ["hold", id], in: program, ownerExitsAfter: "apply")
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
        let result = try await result(of: ["account"] + command, in: program, ownerExitsAfter: word)
        #expect(result.status == 0, "\(result.testDescription)")
        #expect(try await program.succeed("account", "list", "--json").objects().map { $0["name"] as? String } == after)
    }

    @Test func rejectsExistingAccount() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let result = try await result(of: ["account", "add", "studio", "https://two.example/"], in: program, ownerExitsAfter: "replace")
        #expect(result.status == 4, "\(result.testDescription)")
    }

    @Test(
        arguments: [
            ["list", "--json"], ["show", "ID", "--json"], ["why", "ID"], ["watch"], ["now", "ID"], ["queue", "status"],
            ["account", "list"],
        ], ExitingOwner.Leftovers.allCases)
    func completesCommandsAfterOwnerExits(command: [String], leftovers: ExitingOwner.Leftovers) async throws {
        let (program, id) = try await programWithSession()
        let owner = try await ExitingOwner(program.store)
        let running = try program.start(command.map { $0 == "ID" ? id : $0 })
        // With its first request, the command reads the identity of the owner.
        try await owner.serve(1, leaving: leftovers)
        let result = await running.result()
        #expect(result.status == 0 && !result.lines.isEmpty, "\(result.testDescription)")
        // The owner has exited, so a command that starts a session prints how to run the queue.
        let advice = command[0] == "now" ? "No process runs this queue. To run it: transferq run, or transferq agent start\n" : ""
        #expect(result.diagnostics == advice, "\(result.testDescription)")
    }

    @Test(arguments: ExitingOwner.Leftovers.allCases, 1...3) func stopSucceedsIfAgentExitsBeforeRequest(
        leftovers: ExitingOwner.Leftovers, after count: Int
    )
        async throws
    {
        let (program, _) = try await programWithSession()
        let agent = try await ExitingOwner(program.store, as: .agent)
        let running = try program.start(["agent", "stop", "--json"])
        try await agent.serve(count, leaving: leftovers)
        let result = await running.result()
        #expect(result.status == 0 && result.lines == ["{\"running\":false}"], "\(result.testDescription)")
    }

    /// Each owner exits before it responds to the request for events. The command prints the missed events from the log.
    @Test(.timeLimit(.minutes(10))) func watchPrintsMissedEventsAfterOwnersExit() async throws {
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

    /// Opens the queue as the next owner. Retries while the command has the queue open to read the log.
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

    /// Runs a command. The owner exits after it has performed a request that contains `word`, and before it responds.
    private func result(of command: [String], in program: TransferQ, ownerExitsAfter word: String) async throws -> CommandResult {
        let owner = try await ExitingOwner(program.store)
        let running = try program.start(command)
        try await owner.serve(until: word)
        return await running.result()
    }
}
