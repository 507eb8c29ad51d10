import Dispatch
import Foundation
import ProcessFixture
import SystemPackage
import Testing

/// The commands report unreadable sessions, which the queue has put into quarantine.
@Suite struct QuarantineTests {
    /// Returns a program whose queue contains two sessions, the first of which is unreadable.
    private func program() async throws -> (TransferQ, id: String) {
        let program = try TransferQ()
        for name: String in ["one", "two"] { try program.folder.file(name, size: 10) }
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let ids = try await program.succeed("add", "studio", "one", "two", "--each").lines
        try await program.changeDatabase("UPDATE session SET direction = 'sideways' WHERE key = 1")
        return (program, ids[0])
    }

    @Test func reportsQuarantine() async throws {
        let (program, id) = try await program()
        for options in [[], ["--json"]] {
            let listed = try await program.run(["list"] + options)
            #expect(listed.diagnostics.contains("1 session is"), "\(listed.testDescription)")
            #expect(listed.output.contains("two") && !listed.output.contains(id))
        }
        let why = try await program.run("why", String(id.prefix(8)))
        #expect(why.status == 4 && why.diagnostics.contains("quarantine retry 1"), "\(why.testDescription)")
        let doctor = try await program.run("doctor", "--json", "--timeout", "1")
        let findings = try doctor.objects()
        #expect(doctor.status == 1)
        #expect(findings.contains { $0["check"] as? String == "quarantine" && $0["sessions"] as? Int == 1 }, "\(doctor.testDescription)")
        let row = try #require(try await program.succeed("quarantine", "list", "--json").objects().first)
        #expect(row["id"] as? String == id && row["name"] as? String == "one" && row["number"] as? Int == 1)
        #expect(try await program.succeed("quarantine", "list").output.contains("one"))
    }

    @Test func retriesSession() async throws {
        let (program, id) = try await program()
        try await program.succeed("list")
        // A session that is still unreadable returns to quarantine.
        #expect(try await program.succeed("quarantine", "retry", "1").lines == ["1"])
        #expect(try await program.succeed("list").diagnostics.contains("1 session is"))
        let number = try #require(try await program.succeed("quarantine", "list", "--json").objects().first?["number"] as? Int)
        try await program.succeed("quarantine", "retry", "\(number)")
        try await program.changeDatabase("UPDATE session SET direction = 'upload' WHERE key = 1")
        let listed = try await program.succeed("list", "--json")
        #expect(try listed.objects().first?["id"] as? String == id && listed.diagnostics == "", "\(listed.testDescription)")
        #expect(try await program.succeed("quarantine", "list", "--json").lines == [])
    }

    @Test func dropsSession() async throws {
        let (program, id) = try await program()
        try await program.succeed("list")
        #expect(try await program.succeed("quarantine", "drop", "1").lines == ["1"])
        let listed = try await program.succeed("list")
        #expect(listed.diagnostics == "" && !listed.output.contains(id), "\(listed.testDescription)")
        for command in ["drop", "retry"] {
            let again = try await program.run("quarantine", command, "1")
            #expect(again.status == 4 && again.lines == [], "\(again.testDescription)")
        }
    }

    @Test func reportsQuarantineThroughOwner() async throws {
        let (program, id) = try await program()
        try await program.succeed("agent", "start")
        do {
            try await checkOwner(program, id)
        } catch {
            _ = try? await program.run("agent", "stop")
            throw error
        }
        try await program.succeed("agent", "stop")
    }

    private func checkOwner(_ program: TransferQ, _ id: String) async throws {
        #expect(try await program.succeed("list").diagnostics.contains("1 session is"))
        let row = try #require(try await program.succeed("quarantine", "list", "--json").objects().first)
        #expect(row["id"] as? String == id)
        #expect(try await program.succeed("quarantine", "drop", "1").lines == ["1"])
        #expect(try await program.succeed("list").diagnostics == "")
    }
}

extension TransferQ {
    /// Changes the database directly. No process may own the queue during this call.
    func changeDatabase(_ sql: String) async throws {
        let script = "import sqlite3, sys; store = sqlite3.connect(sys.argv[1]); store.execute(sys.argv[2]); store.commit()"
        let path = store.appending("queue.sqlite").string
        let (status, _) = try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try StartedProgram.run("python3", ["-c", script, path, sql]) })
            }
        }
        try #require(status == 0)
    }
}
