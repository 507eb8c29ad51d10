import Foundation
import ScriptedHTTP
import SystemPackage
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Each message of the program about a common failure has a row in *Troubleshooting*, in the section that `why` names.
@Suite(.serialized) struct TroubleshootingRowTests {
    /// Returns the quoted texts of each table row, by section. A message that a row describes contains the row's texts in this order.
    private static func rows() throws -> [String: [[String]]] {
        let article = try String(contentsOfFile: "Sources/transferq/transferq.docc/Troubleshooting.md", encoding: .utf8)
        let sections = article.components(separatedBy: "\n## ").dropFirst().map { section in
            let lines = section.split(separator: "\n")
            let texts = lines.filter { $0.hasPrefix("| `") }.map { row in
                row.components(separatedBy: " | ")[0].components(separatedBy: "`").enumerated()
                    .filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
            }
            return (String(lines[0]), texts)
        }
        return Dictionary(uniqueKeysWithValues: sections)
    }

    private static func contains(_ message: String, _ texts: [String]) -> Bool {
        var rest = message[...]
        for text in texts {
            guard let range = rest.firstRange(of: text) else { return false }
            rest = rest[range.upperBound...]
        }
        return true
    }

    /// Runs a session until its first failure, and compares the output of `why` with the article.
    private static func check(_ program: TransferQ, _ id: String) async throws {
        let run = try program.start(["run", "--progress", "plain"])
        while !["retrying  ", "gave up  ", "blocked  "].contains(where: run.diagnostics.contains) { await Task.yield() }
        run.send(SIGINT)
        _ = await run.result()
        let why = try await program.succeed("why", id).output
        let named = try #require(why.firstMatch(of: /See \S+ in the repository, "(.+?)"\./), "\(why)")
        let rows = try #require(try rows()[String(named.1)], "\(why)")
        #expect(rows.contains { Self.contains(why, $0) }, "\(why)")
    }

    /// Adds an account whose endpoint is at a port of this machine, and an upload to this account.
    ///
    /// - Parameter start: The part of the endpoint's address before the host, for example `http+put://`.
    private static func upload(_ start: String, _ port: UInt16) async throws -> (TransferQ, id: String) {
        let program = try TransferQ()
        try program.folder.file("a", size: 1)
        try await program.succeed("account", "add", "studio", "\(start)127.0.0.1:\(port)/files/")
        return (program, try await program.succeed("upload", "studio", "a").lines[0])
    }

    private static let statuses = [301, 400, 401, 403, 404, 405, 409, 413, 422, 429, 500, 501, 502, 503, 504, 507]

    @Test(.timeLimit(.minutes(10)), arguments: statuses, ["tus+http://", "http+put://"])
    func explainsStatus(status: Int, start: String) async throws {
        let server = try ScriptedServer { _, _ in [.answer(status)] }
        defer { server.stop() }
        let (program, id) = try await Self.upload(start, server.port)
        try await Self.check(program, id)
    }

    @Test(.timeLimit(.minutes(10)), arguments: [403, 404, 500]) func explainsStatusOfDownload(status: Int) async throws {
        let server = try ScriptedServer { _, _ in [.answer(status)] }
        defer { server.stop() }
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "http+put://127.0.0.1:\(server.port)/files/")
        try await Self.check(program, program.succeed("download", "studio", "a").lines[0])
    }

    @Test(.timeLimit(.minutes(10)), arguments: ["tus+http://", "http+put://", "sftp://me@"])
    func explainsStoppedServer(start: String) async throws {
        let closed = try ReservedPort()
        let (program, id) = try await Self.upload(start, closed.port)
        try await Self.check(program, id)
    }

    @Test(.timeLimit(.minutes(10)), arguments: [[ServerStep.close], [.reset], [.raw("login: "), .close]])
    func explainsBrokenResponse(steps: [ServerStep]) async throws {
        let server = try ScriptedServer { _, _ in steps }
        defer { server.stop() }
        let (program, id) = try await Self.upload("http+put://", server.port)
        try await Self.check(program, id)
    }

    @Test(.timeLimit(.minutes(10))) func explainsMissingFile() async throws {
        let server = try ScriptedServer { _, _ in [.answer(201)] }
        defer { server.stop() }
        let (program, id) = try await Self.upload("http+put://", server.port)
        try FileManager.default.removeItem(atPath: program.folder.path.appending("a").string)
        try await Self.check(program, id)
    }
}
