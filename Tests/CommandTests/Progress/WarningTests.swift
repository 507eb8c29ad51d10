import Locking
import ScriptedHTTP
import Testing

/// Warnings about files, and errors of accounts, are shown during the run and afterwards.
@Suite struct WarningTests {
    /// A server that concatenates partial uploads but does not let clients remove them.
    private static func server() throws -> ScriptedServer {
        let count = Locked(0)
        return try ScriptedServer { request, _ in
            let tus = ["Tus-Resumable": "1.0.0"]
            switch request.method {
            case "OPTIONS":
                return [.answer(204, tus.merging(["Tus-Version": "1.0.0", "Tus-Extension": "creation,concatenation,termination"]) { $1 })]
            case "POST":
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                return [.answer(201, tus.merging(["Location": "/files/\(number)"]) { $1 })]
            case "PATCH": return [.answer(204, tus.merging(["Upload-Offset": "\(request.contentLength)"]) { $1 })]
            case "HEAD": return [.answer(200, tus.merging(["Upload-Offset": "10", "Upload-Length": "10"]) { $1 })]
            default: return [.answer(403, tus)]
            }
        }
    }

    @Test func showsWarnings() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let program = try TransferQ()
        let path = try program.folder.file("reel", size: 10)
        try await program.succeed(
            "account", "add", "studio", "http://127.0.0.1:\(server.port)/files/", "--setting", "parallelThreshold=1", "--setting",
            "singleRequestSize=0")
        let id = try await program.succeed("add", "studio", "reel", "--parallel", "2").lines[0]
        let run = try await program.succeed("run", "--progress", "plain")
        let lines = (run.lines + run.diagnostics.split(separator: "\n").map(String.init)).filter { $0.contains("warning    ") }
        #expect(lines.count == 1 && lines.first?.contains("file reel: ") == true, "\(run.output) \(run.diagnostics)")
        let item = try #require((try await program.succeed("show", id, "--json").objects().first?["items"] as? [[String: Any]])?.first)
        let warning = try #require((item["warnings"] as? [String])?.first)
        #expect(lines.first?.contains(warning) == true && item["state"] as? String == "completed")
        #expect(try await program.succeed("show", id).lines.contains("\(path): \(warning)"))
    }

    @Test func showsErrorOfBlockedAccountTwice() async throws {
        let server = try ScriptedServer { _, _ in [.answer(401)] }
        defer { server.stop() }
        let program = try TransferQ()
        try program.folder.file("reel", size: 10)
        try await program.succeed("account", "add", "studio", "http+put://127.0.0.1:\(server.port)/")
        try await program.succeed("add", "studio", "reel", "reel", "--each")
        let lines = try await program.run("run").diagnostics.split(separator: "\n")
        let found = lines.filter { $0.contains("requires credentials") }
        #expect(found.count == 2 && found.first?.hasPrefix("blocked    account \"studio\": ") == true, "\(lines)")
        #expect(found.allSatisfy { $0.contains("After fixing this: transferq account unblock ") }, "\(lines)")
    }

    /// A failed upload leaves content on the server. `show` prints how to resume or remove this content.
    @Test func showsUnfinishedContentOfFailedItem() async throws {
        let server = try ScriptedServer { request, _ in
            switch request.method {
            case "OPTIONS": [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,termination"])]
            case "POST": [.tus(201, ["Location": "/files/1"])]
            case "PATCH" where request.headers["upload-offset"] == "0": [.tus(204, ["Upload-Offset": "2048"])]
            case "PATCH": [.tus(403)]
            case "HEAD": [.tus(200, ["Upload-Offset": "2048", "Upload-Length": "4096"])]
            default: [.tus(204)]
            }
        }
        defer { server.stop() }
        let program = try TransferQ()
        let path = try program.folder.file("reel", size: 4_096)
        try await program.succeed(
            "account", "add", "studio", "http://127.0.0.1:\(server.port)/files/", "--setting", "singleRequestSize=0")
        let id = try await program.succeed("add", "studio", "reel", "--chunk", "2K").lines[0]
        #expect(try await program.run("run", "--progress", "none").status == 1)
        let line = "\(path): the server keeps 2.00 KiB of the unfinished file. \"transferq retry\" resumes the file;"
        let shown = try await program.succeed("show", id)
        #expect(shown.lines.contains { $0.hasPrefix(line) }, "\(shown.output)")
        try await program.succeed("remove", id)
        try await program.succeed("run", "--progress", "none")
        #expect(server.requests.last?.method == "DELETE", "Removing the session removes the unfinished upload.")
    }
}
