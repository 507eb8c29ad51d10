import Foundation
import Logging
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

/// Sessions in quarantine, and a web server that runs in the queue's process.
@Suite struct QuarantineResourceTests {
    @Test func `sessions in quarantine are listed, retried and removed`() async throws {
        let folder = FilePath(NSTemporaryDirectory()).appending("transferkit-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        let (store, source) = (folder.appending("store"), folder.appending("source"))
        try Data("content".utf8).write(to: URL(filePath: source.string))
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        let memory = MemoryTransport()
        func open() async throws -> TransferQueue {
            try await TransferQueue(storage: .folder(store), transports: [memory], configuration: configuration)
        }
        var queue = try await open()
        try await queue.save(Account("a", endpoints: [memory.endpoint()]))
        let ids = try await queue.add(
            (0..<3).map { try .upload(items: [TransferItem(source, as: RemotePath("\($0)"))], to: "a", name: "session \($0)") }, at: nil,
            held: true)
        await queue.shutdown()
        let change = """
            import sqlite3, sys
            store = sqlite3.connect(sys.argv[1])
            store.execute("UPDATE session SET direction = 'sideways' WHERE key IN (1, 2)")
            store.commit()
            """
        let database = store.appending("queue.sqlite").string
        let changed = try await BlockingIO.run { try StartedProgram.run("python3", ["-c", change, database]) }
        try #require(changed.status == 0)
        queue = try await open()
        let events = queue.events
        _ = try await queue.sessions()
        for await event in events { if case .quarantined = event.kind { break } }
        var options = WebServerOptions()
        options.port = 0
        let server = WebServer(queue, tokensIn: store, options: options)
        let port = try #require(URLComponents(string: try await server.start())?.port)
        let token = try String(contentsOfFile: store.appending("web.token").string, encoding: .utf8)
        let client = WebClient(port: UInt16(port), token: token.trimmingCharacters(in: .whitespacesAndNewlines))
        func rows() async throws -> [[String: Any]] {
            try #require(try await client.get("/api/v1/quarantine").object["quarantined"] as? [[String: Any]])
        }
        var found = try await rows()
        while found.count < 2 { found = try await rows() }
        #expect(found.map { $0["number"] as? Int } == [1, 2])
        // The queue may find the second session first.
        let byName = found.sorted { $0["name"] as? String ?? "" < $1["name"] as? String ?? "" }
        #expect(byName.map { $0["name"] as? String } == ["session 0", "session 1"])
        #expect(byName.map { $0["id"] as? String } == ids.prefix(2).map(\.description))
        #expect(found.allSatisfy { ($0["foundAt"] as? String)?.hasSuffix("Z") == true && ($0["reason"] as? String)?.isEmpty == false })
        #expect(try await client.post("/api/v1/quarantine/1/remove").status == 204)
        #expect(try await rows().map { $0["number"] as? Int } == [2])
        #expect(try await client.post("/api/v1/quarantine/2/retry").status == 204)
        #expect(try await rows().isEmpty)
        let gone = try await client.post("/api/v1/quarantine/1/retry")
        #expect((400..<500).contains(gone.status) && gone.code != nil, "\(gone.body)")
        #expect(try await client.post("/api/v1/quarantine/x/remove").status == 404)
        await server.stop()
        await queue.shutdown()
    }
}
