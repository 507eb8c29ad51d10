import Locking
import ScriptedHTTP
import Testing

/// Warnings about completed files are shown during the run and afterwards.
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
        #expect(lines.count == 1 && lines.first?.contains("file 1: ") == true, "\(run.output) \(run.diagnostics)")
        let item = try #require((try await program.succeed("show", id, "--json").objects().first?["items"] as? [[String: Any]])?.first)
        let warning = try #require((item["warnings"] as? [String])?.first)
        #expect(lines.first?.contains(warning) == true && item["state"] as? String == "completed")
        #expect(try await program.succeed("show", id).lines.contains("\(path): \(warning)"))
    }
}
