import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferFleet
import TransferKit

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.timeLimit(.minutes(2))) struct ProgramTests {
    private static let transferq = FilePath(MemberFixture.program).removingLastComponent().appending("transferq").string

    private func run(_ url: String, _ arguments: String...) async throws -> (status: Int32, lines: [String]) {
        try await run(["--fleet", url] + arguments)
    }

    private func run(_ arguments: [String]) async throws -> (status: Int32, lines: [String]) {
        let result = try await BlockingIO.run {
            try StartedProgram.run("sh", ["-c", "exec \"$0\" \"$@\" 2>&1", Self.transferq] + arguments)
        }
        return (result.status, String(decoding: result.output, as: UTF8.self).split(separator: "\n").map(String.init))
    }

    @Test func `commands create, fill and control a fleet`() async throws {
        let server = try PostgresServer.shared.get()
        let url = server.url(try await server.createDatabase())
        let missing = try await run(url, "list")
        let sentence = "transferq: The database has no fleet. Create it with: transferq --fleet URL fleet init"
        #expect(missing.status == 3 && missing.lines.first?.hasPrefix(sentence) == true, "\(missing)")
        #expect(try await run(url, "fleet", "init").lines == ["Created the fleet."])
        #expect(try await run(url, "fleet", "init").lines == ["The fleet has the current version."])
        let checked = try await run(url, "doctor")
        #expect(checked.status == 0 && !checked.lines.contains { $0.contains("transferq run") }, "\(checked)")
        #expect(try await run(url, "account", "add", "studio", "tus+http://127.0.0.1:9/files/").status == 0)
        let file = FileManager.default.temporaryDirectory.appending(path: "fleet-\(UUID().uuidString)")
        try Data("content".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        var ids: [String] = []
        for name in ["one", "two", "three"] {
            let added = try await run(url, "--place", "label:fast", "upload", "studio", file.path, "--name", name)
            try #require(added.status == 0 && added.lines.count == 1, "\(added)")
            ids.append(added.lines[0])
        }
        #expect(try await run(url, "now", ids[2]).status == 0)
        #expect(try await run(url, "hold", ids[1]).status == 0)
        #expect(try await run(url, "move", ids[1], "0").status == 0)
        let fleet = try Fleet(url, place: .anywhere)
        #expect(try await fleet.sessionIDs().map { "\($0)" } == [ids[1], ids[0], ids[2]])
        let list = try await run(url, "list")
        #expect(list.status == 0 && list.lines.count == 4, "\(list)")
        let why = try await run(url, "why", ids[0])
        #expect(why.lines.joined().contains("members with the label \"fast\""), "\(why)")
        #expect(try await run(url, "resume", ids[0]).status == 4)
        #expect(try await run(url, "show", ids[0]).lines.contains { $0.contains("one") })
        #expect(try await run(url, "queue", "set", "--rate", "5M").status == 0)
        #expect(try await run(url, "queue", "status").lines.contains { $0.hasPrefix("Max rate:") && !$0.contains("no limit") })
        #expect(try await run(url, "queue", "stop").status == 0)
        #expect(try await fleet.status().mode == .stopped)
        #expect(try await run(url, "fleet", "status").lines.first == "Mode:     stopped")
        #expect(try await run(url, "fleet", "members").lines.isEmpty)
        #expect(try await run(url, "fleet", "evict", "x").status != 0)
        #expect(try await run(url, "remove", "--yes", ids[0], ids[1], ids[2]).status == 0)
        #expect(try await fleet.sessionIDs().isEmpty)
        let unsupported = try await run(url, "run")
        #expect(
            unsupported.status == 2
                && unsupported.lines == [
                    "transferq: This command needs a queue in a storage folder. It can't be used with --fleet."
                ])
    }

    @Test func `init reports whether it created or migrated the tables`() async throws {
        let server = try PostgresServer.shared.get()
        let url = server.url(try await server.createDatabase())
        let created = try await run(url, "fleet", "init", "--json")
        let version = try await Fleet.setUp(at: url).version
        #expect(created.lines == [#"{"result":"created","version":\#(version)}"#])
        #expect(try await run(url, "fleet", "init", "--json").lines == [#"{"result":"current","version":\#(version)}"#])
        let fleet = try await FleetFixture()
        try await fleet.revertTables(to: 4)
        #expect(
            try await run(fleet.url, "fleet", "init").lines == ["Migrated the fleet's tables from version 4 to version \(version)."])
        try await fleet.revertTables(to: 4)
        let migrated = #"{"previousVersion":4,"result":"migrated","version":\#(version)}"#
        #expect(try await run(fleet.url, "fleet", "init", "--json").lines == [migrated])
    }

    @Test func `evict reports the removed member`() async throws {
        let fleet = try await FleetFixture()
        for name in ["a", "b"] { try await fleet.join(name) }
        #expect(try await run(fleet.url, "fleet", "evict", "a", "--json").lines == [#"{"member":"a","result":"removed"}"#])
        let sentence = "Removed the member. Sessions that may run elsewhere continue on other members within 15 s."
        #expect(try await run(fleet.url, "fleet", "evict", "b").lines == [sentence])
        #expect(try await fleet.fleet.members().isEmpty)
    }

    /// With `--dedupe`, the command leaves the check of remote names to the fleet.
    @Test func `files with the same remote name are rejected even with --dedupe`() async throws {
        let fleet = try await FleetFixture(
            account: Account("studio", endpoints: [Endpoint(transport: "http", address: "https+put://one.example/")]))
        let root = FilePath(FileManager.default.temporaryDirectory.appending(path: "fleet-\(UUID().uuidString)").path)
        defer { try? FileManager.default.removeItem(atPath: root.string) }
        var paths: [String] = []
        for name in ["one", "two"] {
            let folder = root.appending(name)
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
            paths.append(folder.appending("clip.mov").string)
            try name.write(toFile: paths[paths.count - 1], atomically: false, encoding: .utf8)
        }
        let added = try await run(fleet.url, "upload", "studio", paths[0], paths[1], "--dedupe", "k")
        #expect(added.status == 2 && added.lines.joined().contains("have the same remote name, \"clip.mov\""), "\(added)")
        #expect(try await fleet.fleet.sessionIDs().isEmpty)
    }

    @Test func `a member in the background starts, reports its status and stops`() async throws {
        let fixture = try await MemberFixture()
        let (url, store) = (fixture.fleet.url, fixture.folder.appending("store").string)
        let reel = try await fixture.add("reel", sizes: [100_000])
        let started = try await run(url, "agent", "start", "--store", store, "--name", "a", "--label", "fast", "--json")
        let result: Result<Void, any Error>
        do {
            try #require(started.status == 0 && started.lines.count == 1, "\(started)")
            let text = try #require(started.lines.first)
            let process = try #require(text.split(separator: "\"process\":").last?.prefix { $0.isNumber })
            #expect(text.contains("\"running\":true") && text.contains("\"log\":\"\(store)/agent.log\""), "\(text)")
            #expect(getsid(try #require(pid_t(String(process)))) == pid_t(String(process)))
            try await fixture.waitForAll([reel])
            try fixture.checkArrived("reel", files: 1)
            let status = try await run(url, "agent", "status", "--store", store)
            #expect(status.status == 0 && status.lines.first?.hasPrefix("The agent (process \(process))") == true, "\(status)")
            // A second start leaves the member unchanged.
            #expect(try await run(url, "agent", "start", "--store", store, "--json").lines == started.lines)
            #expect(try await run(url, "fleet", "members").lines == ["a [fast]: live, 0 of 1 slots in use"])
            // A member with another storage folder can't join under the same name.
            let taken = try await run(url, "agent", "start", "--store", store + "-2", "--name", "a")
            #expect(taken.status == 3 && taken.lines.first?.contains("already has a live member named \"a\"") == true, "\(taken)")
            // Only the fleet changes the member's own queue.
            #expect(try await run(["--store", store, "list"]).status == 0)
            let change = try await run(["--store", store, "queue", "set", "--max-sessions", "9"])
            #expect(change.status == 2 && change.lines.first?.contains("as a member of a fleet") == true, "\(change)")
            result = .success(())
        } catch {
            result = .failure(error)
        }
        let stopped = try await run(url, "agent", "stop", "--store", store)
        try result.get()
        #expect(stopped.status == 0 && stopped.lines.isEmpty, "\(stopped)")
        // The member has left the fleet.
        #expect(try await run(url, "fleet", "members").lines.isEmpty)
        let status = try await run(url, "agent", "status", "--store", store)
        #expect(status.status == 4 && status.lines.first?.contains("No agent runs the queue in \(store).") == true, "\(status)")
        #expect(try await run(url, "agent", "stop", "--store", store).status == 4)
        let log = try String(contentsOfFile: store + "/agent.log", encoding: .utf8)
        #expect(log.contains("Joined the fleet. member=a"), "\(log)")
    }

    @Test func `a start in the background reports why it failed`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "fleet-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let server = try PostgresServer.shared.get()
        let missing = try await run(server.url("missing"), "agent", "start", "--store", folder)
        #expect(missing.status == 3 && missing.lines.first?.contains("Cannot reach the fleet's database") == true, "\(missing)")
        let unit = try await run(server.url("missing"), "agent", "unit")
        #expect(unit.status == 2 && unit.lines.first?.contains("agent run") == true, "\(unit)")
    }

    /// Tools that generate manual pages and the documentation site read the help without a fleet.
    @Test(arguments: [
        (["--help"], "USAGE: transferq-fleet <subcommand>"), (["fleet", "--help"], "USAGE: transferq-fleet fleet <action>"),
        (["agent", "run", "--help"], "USAGE: transferq-fleet agent run"),
        (["agent", "start", "--help"], "USAGE: transferq-fleet agent start"),
        (["--experimental-dump-help"], "\"commandName\" : \"transferq-fleet\""),
    ]) func `help needs no fleet`(arguments: [String], text: String) async throws {
        let result = try await BlockingIO.run { try StartedProgram.run(MemberFixture.program, arguments) }
        #expect(result.status == 0 && String(decoding: result.output, as: UTF8.self).contains(text), "\(result)")
    }

    @Test func `wrong options are rejected with a message`() async throws {
        let server = try PostgresServer.shared.get()
        let wrong = try await run("mysql://x", "list")
        #expect(wrong.status == 2 && wrong.lines[0].contains("must begin with postgresql://"), "\(wrong)")
        let invalidPlace = try await run(server.url("postgres"), "--place", "moon", "list")
        #expect(invalidPlace.status == 2 && invalidPlace.lines[0].contains("--place must be"), "\(invalidPlace)")
        #expect(try await run(server.url("postgres"), "agent", "run", "--slots", "0").status == 2)
        #expect(try await run(server.url("postgres"), "fleet", "evict").status == 2)
    }
}
