import Foundation
import SystemPackage
import Testing

/// Each command prints the same output and exits with the same status, whether or not another process owns the queue.
@Suite(.serialized) struct OwnerParityTests {
    enum Owner: CaseIterable {
        case run
        case agent
    }

    @Test(arguments: Owner.allCases) func printsSameOutputAsWithoutOwner(owner: Owner) async throws {
        let alone = try await transcript(of: nil)
        let owned = try await transcript(of: owner)
        #expect(alone.count == owned.count)
        for (alone, owned) in zip(alone, owned) { #expect(alone == owned) }
    }

    /// Returns the output of all commands, with placeholders for values that differ between any two queues.
    private func transcript(of owner: Owner?) async throws -> [String] {
        let program = try TransferQ()
        var run: RunningQueue?
        switch owner {
        case .run:
            run = try RunningQueue(program, "--forever")
            try await run?.event("queueStarted")
        case .agent: try await program.succeed("agent", "start")
        case nil: break
        }
        var lines: [String] = []
        do {
            lines = try await commands(program)
        } catch {
            await end(owner, run, program)
            throw error
        }
        await end(owner, run, program)
        return lines
    }

    private func end(_ owner: Owner?, _ run: RunningQueue?, _ program: TransferQ) async {
        switch owner {
        case .run:
            run?.command.send(SIGTERM)
            #expect(await run?.command.result().status == 130)
        case .agent:
            let stopped = try? await program.run("agent", "stop")
            #expect(stopped?.status == 0)
        case nil: break
        }
    }

    private func commands(_ program: TransferQ) async throws -> [String] {
        for name: String in ["a", "b", "c"] { try program.folder.file(name, size: 10) }
        var transcript: [String] = []
        var ids: [String] = []
        func record(_ words: String...) async throws {
            let result = try await program.run(words)
            transcript.append(normalized("\(words): \(result.status)\n" + result.output + result.diagnostics, program, ids))
        }
        try await record("account", "add", "studio", "https://one.example/", "--token-env", "TOKEN")
        try await record("account", "add", "studio", "https://one.example/")
        try await record("account", "edit", "studio", "--rate", "1M", "--max-sessions", "2", "--json")
        try await record("account", "show", "studio")
        try await record("account", "list", "--json")
        ids = try await program.run("add", "studio", "a", "b", "c", "--each", "--hold", "--tag", "x", "--context", "{\"n\":1}").lines
        #expect(ids.count == 3)
        for words in [["list"], ["list", "--json"], ["queue", "set", "--max-sessions", "3", "--rate", "1M", "--json"]] {
            let result = try await program.run(words)
            transcript.append(normalized("\(words): \(result.status)\n" + result.output + result.diagnostics, program, ids))
        }
        try await record("add", "nobody", "a")
        try await record("add", "studio", "a", "--at", "9")
        try await record("add", "studio", "missing")
        try await record("move", ids[2], "0")
        try await record("move", ids[2], "7")
        try await record("show", ids[0])
        try await record("show", ids[0], "--json")
        try await record("show", String(ids[0].prefix(13)), "--json")
        try await record("why", ids[1])
        try await record("set", ids[0], "--set-tag", "y", "--rate", "3K")
        try await record("resume", ids[0])
        try await record("cancel", ids[0], ids[1], "--json")
        try await record("cancel", "--all")
        try await record("retry", "ffffffff")
        try await record("hold", "--account", "nobody")
        try await record("remove", "--tag", "y")
        try await record("list", "--json")
        try await record("account", "unblock", "studio")
        try await record("account", "remove", "studio")
        try await record("account", "remove", "studio", "--cascade", "--json")
        try await record("account", "list")
        try await record("list")
        return transcript
    }

    private func normalized(_ text: String, _ program: TransferQ, _ ids: [String]) -> String {
        var text = text.replacingOccurrences(of: program.folder.path.string, with: "FOLDER")
        for (number, id) in ids.enumerated() {
            text = text.replacingOccurrences(of: id, with: "ID\(number)").replacingOccurrences(
                of: String(id.prefix(13)), with: "ID\(number)"
            )
            .replacingOccurrences(of: String(id.prefix(8)), with: "ID\(number)")
        }
        // Only a queue without an owner needs this advice.
        text = text.replacingOccurrences(of: "No process runs this queue. To run it: transferq run, or transferq agent start\n", with: "")
        return text.replacing(/\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d{4})/, with: "TIME")
    }
}
