import Foundation
import SystemPackage
import TUSLoopback
import Testing

/// The program with an account "studio" on a tus server that runs in the test process.
struct LoopbackStudio: Sendable {
    let program: TransferQ
    let server: TUSLoopbackServer
    let url: URL

    static func with(
        _ options: LoopbackOptions = LoopbackOptions(), _ body: (LoopbackStudio) async throws -> Void
    ) async throws {
        let program = try TransferQ()
        let server = TUSLoopbackServer(folder: program.folder.path.appending("server"), options: options)
        let url = try await server.start()
        do {
            try await program.succeed("account", "add", "studio", url.absoluteString)
            try await body(LoopbackStudio(program: program, server: server, url: url))
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    /// Whether the server has exactly one file with this name, with the same content as the local file.
    func hasArrived(_ name: String) throws -> Bool {
        let stored = server.storedFiles(named: name)
        guard stored.count == 1 else { return false }
        return FileManager.default.contentsEqual(atPath: stored[0].string, andPath: program.folder.path.appending(name).string)
    }

    /// Adds a session with a file of 120 MiB, starts `run`, and waits until bytes of the file were sent. With a low
    /// `LoopbackOptions.bytesPerSecond`, the run then still has to send most of the file.
    func beginRun() async throws -> (id: String, run: RunningCommand) {
        try program.folder.sparseFile("a", size: 120 << 20)
        let id = try await program.succeed("add", "studio", "a").lines[0]
        let run = try program.start(["run", "--progress", "json"])
        for await line in run.lines {
            let event = try CommandResult.object(line)
            if event["event"] as? String == "progress", (event["bytesSent"] as? Int ?? 0) > 0 { break }
        }
        return (id, run)
    }

    func session(_ id: String) async throws -> [String: Any] {
        try #require(try await program.succeed("show", id, "--json").objects().first)
    }
}
