import Foundation
import SSHFixture
import SystemPackage
import TUSLoopback
import Testing

/// A session whose tus server stops, so that the account's second endpoint, an OpenSSH server, takes over.
@Suite(.timeLimit(.minutes(10))) struct SFTPFallbackRunTests {
    @Test func reportsFallback() async throws {
        let ssh = try await SSHServerProcess.start()
        defer { ssh.stop() }
        var program = try TransferQ()
        program.environment = ["SSH_AUTH_SOCK": ""]
        let path = program.folder.path
        let files = path.appending("files")
        try FileManager.default.createDirectory(atPath: files.string, withIntermediateDirectories: false)
        let tus = TUSLoopbackServer(folder: path.appending("server"))
        let port = try #require(try await tus.start().port)
        // The gate stalls all traffic after 20 files. The session therefore can't complete before the relay stops, even if the relay stops
        // late.
        let gate = TransferGate { tus.statistics.uploads.count { $0.isComplete } < 20 }
        let relay = try RawServer.relay(to: UInt16(port), passes: gate.passes)
        let url = "http://127.0.0.1:\(relay.port)/files/"
        let outage = Task {
            for await _ in gate.holds { break }
            relay.stop()
            await tus.stop()
        }
        let address = "sftp://\(ssh.user)@127.0.0.1:\(ssh.port)\(files.string)/"
        try await program.succeed(
            "account", "add", "both", url, address, "--identity", ssh.userKey, "--known-hosts", "hosts", "--host-key", "accept-new")
        let names = (0..<50).map { "file-\($0)" }
        for (number, name) in names.enumerated() { try program.folder.file(name, size: 300_000 + number, seed: UInt64(number)) }
        let id = try #require(try await program.run(["add", "both"] + names).lines.first)

        let run = try program.start(["run", "--json"])
        var events: [[String: Any]] = []
        var completed: [Int] = []
        for await line in run.lines {
            #expect(try TransferQ.schema.problems(of: line, from: "run") == [], "\(line)")
            let event = try CommandResult.object(line)
            events.append(event)
            if event["event"] as? String == "itemCompleted", let position = event["position"] as? Int {
                completed.append(position)
            }
        }
        outage.cancel()
        await outage.value
        let result = await run.result()
        #expect(result.status == 0, "\(result.testDescription)")
        #expect(completed.sorted() == Array(0..<50), "each file completes exactly once")
        let change = try #require(events.first { $0["event"] as? String == "endpointChanged" && !($0["from"] is NSNull) })
        #expect(change["id"] as? String == id)
        let (from, to) = (change["from"] as? String ?? "", change["to"] as? String ?? "")
        #expect(from.hasPrefix("http://127.0.0.1:") && to == address, "\(from) \(to)")

        let shown = try #require(try await program.succeed("show", id, "--json").objects().first)
        #expect(shown["state"] as? String == "completed" && shown["filesDone"] as? Int == 50)
        #expect(shown["transport"] as? String == "sftp" && (shown["endpoint"] as? String)?.hasPrefix("sftp://") == true)
        let items = try #require(shown["items"] as? [[String: Any]])
        let remoteURLs = items.map { $0["remoteURL"] as? String ?? "" }
        // The gate may withhold the last responses, so the client may know of fewer than 20 complete files. Therefore, the test checks only
        // the first ten.
        #expect(completed.prefix(10).allSatisfy { remoteURLs[$0].hasPrefix(url) }, "completed files stay on their server")
        #expect(remoteURLs.count { $0.hasPrefix("sftp://") } >= 30, "\(remoteURLs)")
        for (name, remoteURL) in zip(names, remoteURLs) {
            let upload = try #require(remoteURL.split(separator: "/").last)
            let stored = remoteURL.hasPrefix(url) ? path.appending("server").appending("\(upload).bin") : files.appending(name)
            #expect(FileManager.default.contentsEqual(atPath: stored.string, andPath: path.appending(name).string), "\(name)")
        }
        let text = try await program.succeed("show", id).output
        #expect(text.contains("sftp") && text.contains("completed"), "\(text)")
    }
}
