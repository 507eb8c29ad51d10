import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Tests of `transferq agent run --web`.
@Suite(.timeLimit(.minutes(5))) struct AgentPageTests {
    /// Reads the agent's log up to the line with the address of the page, and returns the port.
    private func port(_ log: LineReader) async throws -> UInt16 {
        while let line = try await log.next() {
            guard let url = line.firstRange(of: "The page is at ").map({ line[$0.upperBound...].prefix { $0 != " " } }) else { continue }
            #expect(!line.contains("token="))
            return UInt16(try #require(URLComponents(string: String(url.dropLast()))?.port))
        }
        throw CancellationError()
    }

    /// Returns the process ID of the web server for a storage folder.
    private func webServer(_ store: FilePath) throws -> pid_t {
        let found = try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { pid_t($0) }.filter { process in
            let words = (try? Data(contentsOf: URL(fileURLWithPath: "/proc/\(process)/cmdline")))?.split(separator: 0) ?? []
            return words.first.map { String(decoding: $0, as: UTF8.self).hasSuffix("/transferq-web") } ?? false
                && words.contains { String(decoding: $0, as: UTF8.self) == store.string }
        }
        return try #require(found.first)
    }

    @Test func `the agent starts the web server again after a crash, and the web server ends with the agent`() async throws {
        let folder = FilePath(NSTemporaryDirectory()).appending("agent-page-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        let store = folder.appending("store")
        let program = try Commands.start(["agent", "run", "--web", "--web-listen", "127.0.0.1:0"], store: store, mergesErrors: true)
        defer { program.kill() }
        let log = LineReader(program)
        let first = try await port(log)
        let token = try String(contentsOfFile: store.appending("web.token").string, encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(try await WebClient(port: first, token: token).get("/api/v1/queue").object["mode"] as? String == "running")
        kill(try webServer(store), SIGKILL)
        let client = WebClient(port: try await port(log), token: token)
        #expect(try await client.get("/api/v1/queue").status == 200)
        program.kill()
        // The agent holds the other end of the pipe to the web server's standard input. The pipe closes with the agent, and the web
        // server then stops.
        while (try? await client.get("/api/v1/queue")) != nil {}
    }

    /// Starts an agent with a page, passes the agent's storage folder and the page's port to a closure, and expects that the agent then stops.
    private func stopAgent(_ prepare: (_ store: FilePath, _ port: UInt16) async throws -> Void) async throws {
        let folder = FilePath(NSTemporaryDirectory()).appending("agent-page-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        let store = folder.appending("store")
        let program = try Commands.start(["agent", "run", "--web", "--web-listen", "127.0.0.1:0"], store: store, mergesErrors: true)
        let log = LineReader(program)
        try await prepare(store, try await port(log))
        program.send(SIGTERM)
        while try await log.next() != nil {}
        #expect(await Commands.end(of: program) == 0)
    }

    @Test func `an agent in the background starts the page, and the queue's timetable follows the local time`() async throws {
        let folder = FilePath(NSTemporaryDirectory()).appending("agent-page-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        let store = folder.appending("store")
        let words = ["--store", store.string, "agent", "start", "--web", "--web-listen", "127.0.0.1:0"]
        let started = try StartedProgram(Commands.path, words, environment: ["TZ": "Europe/Berlin"])
        try #require(await Commands.end(of: started) == 0)
        do {
            // The agent logs the address of the page after `agent start` has returned.
            var log = ""
            while !log.contains("The page is at ") {
                log = (try? String(contentsOfFile: store.appending("agent.log").string, encoding: .utf8)) ?? ""
            }
            let address = try #require(log.firstMatch(of: #/The page is at http:\/\/127\.0\.0\.1:(?<port>\d+)/#), "\(log)")
            let token = try String(contentsOfFile: store.appending("web.token").string, encoding: .utf8)
                .trimmingCharacters(in: .whitespacesAndNewlines)
            let client = WebClient(port: try #require(UInt16(address.output.port)), token: token)
            // In Berlin, the clock is one or two hours ahead of UTC.
            var calendar = Calendar(identifier: .gregorian)
            calendar.timeZone = try #require(TimeZone(identifier: "Europe/Berlin"))
            func time(_ offset: TimeInterval) -> String {
                let parts = calendar.dateComponents([.hour, .minute], from: Date(timeIntervalSinceNow: offset))
                return "\(parts.hour ?? 0):\(parts.minute ?? 0)"
            }
            let timetable = "* \(time(-1_500))-\(time(1_500)) 3K; * 5K"
            let reply = try await client.post("/api/v1/queue/set", json: #"{"timetable":"\#(timetable)"}"#)
            #expect(reply.status == 200, "\(timetable) \(reply.body)")
            #expect(try await client.get("/api/v1/queue").object["currentRateLimit"] as? Int == 3 << 10, "\(timetable)")
        } catch {
            try await Commands.run(["agent", "stop"], store: store)
            throw error
        }
        try await Commands.run(["agent", "stop"], store: store)
    }

    @Test func `a page that hangs does not keep the agent from stopping`() async throws {
        var page: pid_t = 0
        try await stopAgent { store, _ in
            page = try webServer(store)
            kill(page, SIGSTOP)
        }
        #expect(kill(page, 0) != 0)
    }

    @Test func `a stopping agent ends its page first`() async throws {
        var port: UInt16 = 0
        try await stopAgent { port = $1 }
        #expect(throws: (any Error).self) { try WebConnection(port: port) }
    }
}
