import Foundation
import ScriptedHTTP
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Several commands report an endpoint that failed too often or asked clients to back off, with the time of the next attempt.
@Suite(.serialized) struct BackOffTests {
    /// The outputs of the commands while all sessions wait for an endpoint.
    private struct Outputs {
        var accounts: [String] = []
        var account = ""
        var list: [String] = []
        var why: [String] = []
        var run: [String] = []
        var watch: [String] = []
    }

    /// Runs three sessions with an endpoint that does not work, and returns the outputs of the commands.
    ///
    /// - Parameter hasProbes: Whether the queue soon probes the endpoint, so that `watch` prints another wait.
    private func outputs(_ address: String, hasProbes: Bool) async throws -> Outputs {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", address)
        try program.folder.file("a", size: 1)
        let ids = try await program.succeed("upload", "studio", "a", "a", "a", "--each").lines
        let run = try program.start(["run", "--progress", "plain"])
        var outputs = Outputs()
        repeat { outputs.accounts = try await program.succeed("account", "list").lines } while !outputs.accounts[1].contains(" retries in ")
        let watching = try program.start(["watch", "--since", "now"])
        outputs.account = try await program.succeed("account", "show", "studio").output
        // While a session probes the endpoint, the session is briefly running.
        repeat { outputs.list = try await program.succeed("list").lines } while outputs.list.contains { $0.contains(" running ") }
        for id in ids {
            var why: String
            repeat { why = try await program.succeed("why", id).output } while !why.contains(" is due ")
            outputs.why.append(why)
        }
        if hasProbes {
            for await line in watching.lines {
                outputs.watch.append(line)
                if line.contains("waiting    ") { break }
            }
        }
        run.send(SIGINT)
        outputs.run = await run.result().diagnostics.split(separator: "\n").map(String.init)
        _ = await watching.result()
        return outputs
    }

    @Test(.timeLimit(.minutes(10))) func showsStoppedServer() async throws {
        let closed = try ReservedPort()
        let address = "http://127.0.0.1:\(closed.port)"
        let seen = try await outputs("tus+\(address)/files/", hasProbes: true)
        let reason = "Cannot reach \(address)."
        #expect(seen.accounts[1].contains(#/ retries in \d+ s /#) && seen.accounts[1].hasSuffix(reason), "\(seen.accounts)")
        #expect(seen.account.contains(#/  unavailable; the next attempt is due (in \d+ s|now)\. Cannot reach /#), "\(seen.account)")
        #expect(seen.list.dropFirst().allSatisfy { $0.contains(#/ retries (in \d+ s|now): /#) && $0.hasSuffix(reason) }, "\(seen.list)")
        #expect(seen.why.allSatisfy { $0.contains(#/ is due (in \d+ s|now)\./#) && $0.contains(reason) }, "\(seen.why)")
        let waits = [seen.watch.last, seen.run.last { $0.hasPrefix("waiting ") }].compactMap(\.self)
        #expect(waits.count == 2 && waits.allSatisfy { $0.contains(#/: retries in \d+ s: Cannot reach /#) }, "\(waits)")
        // The time of the next attempt differs slightly at each event. The run does not repeat a line that looks the same.
        #expect(!zip(seen.run, seen.run.dropFirst()).contains { $0 == $1 && $0.hasPrefix("waiting ") }, "\(seen.run)")
    }

    @Test(.timeLimit(.minutes(10))) func showsRequestToBackOff() async throws {
        let server = try ScriptedServer { _, _ in [.answer(503, ["Retry-After": "3000"])] }
        defer { server.stop() }
        let seen = try await outputs("http+put://127.0.0.1:\(server.port)/", hasProbes: false)
        #expect(seen.accounts[1].contains(#/ retries in \d+ s /#), "\(seen.accounts)")
        #expect(seen.account.contains(#/  unavailable; the next attempt is due in \d+ s\. /#), "\(seen.account)")
        #expect(seen.list.dropFirst().allSatisfy { $0.contains(#/ retries in \d+ s: \S/#) }, "\(seen.list)")
        #expect(seen.why.allSatisfy { $0.contains(#/ is due in \d+ s\./#) }, "\(seen.why)")
        let message = /127\.0\.0\.1(:\d+)? (is currently unavailable|asked clients to back off)\./
        #expect((seen.list.dropFirst() + seen.why + [seen.account, seen.accounts[1]]).allSatisfy { $0.contains(message) }, "\(seen)")
    }

    /// The server asks clients to wait for 50 minutes, but is available again before then.
    @Test(.timeLimit(.minutes(10))) func retryOfAccountEndsWaitForServer() async throws {
        let server = try ScriptedServer { _, number in
            number == 0 ? [.answer(503, ["Retry-After": "3000"])] : [.answer(201)]
        }
        defer { server.stop() }
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "http+put://127.0.0.1:\(server.port)/")
        try program.folder.file("a", size: 1)
        try await program.succeed("upload", "studio", "a", "a", "a", "--each")
        let run = try program.start(["run", "--progress", "none"])
        repeat {} while try await !program.succeed("account", "list").lines[1].contains(" retries in ")
        #expect(try await program.succeed("account", "retry", "studio").output == "")
        #expect(await run.result().status == 0)
        #expect(server.requests.count == 4)
    }
}
