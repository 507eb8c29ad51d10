import Foundation
import SystemPackage
import Testing

/// Each command prints the same and ends the same, whoever owns the queue.
@Suite(.serialized) struct SameEverywhereTests {
    enum Owner: CaseIterable {
        case run
        case agent
    }

    @Test(arguments: Owner.allCases) func asWithoutAnOwner(owner: Owner) async throws {
        let alone = try await story(of: nil)
        let owned = try await story(of: owner)
        #expect(alone.count == owned.count)
        for (alone, owned) in zip(alone, owned) { #expect(alone == owned) }
    }

    /// What commands print and say, without what differs between any two queues.
    private func story(of owner: Owner?) async throws -> [String] {
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
        var story: [String] = []
        var ids: [String] = []
        func tell(_ words: String...) async throws {
            let result = try await program.run(words)
            story.append(plain("\(words): \(result.status)\n" + result.output + result.diagnostics, program, ids))
        }
        try await tell("account", "add", "studio", "https://one.example/", "--token-env", "TOKEN")
        try await tell("account", "add", "studio", "https://one.example/")
        try await tell("account", "edit", "studio", "--rate", "1M", "--max-sessions", "2", "--json")
        try await tell("account", "show", "studio")
        try await tell("account", "list", "--json")
        ids = try await program.run("add", "studio", "a", "b", "c", "--each", "--hold", "--tag", "x", "--context", "{\"n\":1}").lines
        #expect(ids.count == 3)
        for words in [["list"], ["list", "--json"], ["queue", "set", "--max-sessions", "3", "--rate", "1M", "--json"]] {
            let result = try await program.run(words)
            story.append(plain("\(words): \(result.status)\n" + result.output + result.diagnostics, program, ids))
        }
        try await tell("add", "nobody", "a")
        try await tell("add", "studio", "a", "--at", "9")
        try await tell("add", "studio", "missing")
        try await tell("move", ids[2], "0")
        try await tell("move", ids[2], "7")
        try await tell("show", ids[0])
        try await tell("show", ids[0], "--json")
        try await tell("show", String(ids[0].prefix(13)), "--json")
        try await tell("why", ids[1])
        try await tell("set", ids[0], "--tag", "y", "--rate", "3K")
        try await tell("resume", ids[0])
        try await tell("cancel", ids[0], ids[1], "--json")
        try await tell("cancel", "--all")
        try await tell("retry", "ffffffff")
        try await tell("hold", "--account", "nobody")
        try await tell("remove", "--tag", "y")
        try await tell("list", "--json")
        try await tell("account", "unblock", "studio")
        try await tell("account", "remove", "studio")
        try await tell("account", "remove", "studio", "--cascade", "--json")
        try await tell("account", "list")
        try await tell("list")
        return story
    }

    private func plain(_ text: String, _ program: TransferQ, _ ids: [String]) -> String {
        var text = text.replacingOccurrences(of: program.folder.path.string, with: "FOLDER")
        for (number, id) in ids.enumerated() {
            text = text.replacingOccurrences(of: id, with: "ID\(number)").replacingOccurrences(
                of: String(id.prefix(13)), with: "ID\(number)"
            )
            .replacingOccurrences(of: String(id.prefix(8)), with: "ID\(number)")
        }
        return text.replacing(/\d{4}-\d\d-\d\dT[\d:.]+Z/, with: "TIME")
    }
}
