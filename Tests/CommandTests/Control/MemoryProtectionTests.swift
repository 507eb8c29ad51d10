import Foundation
import SystemPackage
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Processes that hold secrets hide their memory from other processes of the same user.
@Suite(.enabled(if: geteuid() == 0, "Requires root to act as another user")) struct MemoryProtectionTests {
    /// Runs commands as another user, with a storage folder of this user. The path of the folder's control socket is longer than a socket address
    /// allows (unix(7)).
    private struct OtherUser {
        let program: TransferQ
        private let store: FilePath

        init() throws {
            program = try TransferQ()
            let folder = program.folder.path.appending(String(repeating: "x", count: 120))
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
            for path in [folder, program.folder.path] { #expect(unsafe chown(path.string, 65_534, 65_534) == 0) }
            store = folder.appending("store")
        }

        func start(_ words: [String]) throws -> RunningCommand {
            let words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", TransferQ.executable.string] + words
            return try program.start("/usr/bin/env", (words + ["--store", store.string]).map { Array($0.utf8) })
        }

        func succeed(_ words: String...) async throws -> CommandResult {
            let result = try await start(words).result()
            try #require(result.status == 0, "\(words): \(result.testDescription)")
            return result
        }

        /// Expects that root owns the files in a process's folder in `/proc`, but not the folder, because the process is not dumpable (proc(5)).
        func expectHiddenMemory(of process: pid_t) {
            var status = stat()
            #expect(unsafe stat("/proc/\(process)/environ", &status) == 0 && status.st_uid == 0)
            #expect(unsafe stat("/proc/\(process)", &status) == 0 && status.st_uid == 65_534)
        }
    }

    @Test func hidesMemoryOfAgent() async throws {
        let user = try OtherUser()
        let started = try await user.succeed("agent", "start", "--json")
        let process = try #require(try started.objects().first?["process"] as? Int, "\(started.testDescription)")
        user.expectHiddenMemory(of: pid_t(process))
        _ = try await user.succeed("list", "--json")
        _ = try await user.succeed("agent", "stop")
    }

    /// Commands also read secrets. The server never responds, so each command waits for a response with its secrets in memory.
    @Test(arguments: [["run"], ["account", "check", "silent"], ["doctor"]]) func hidesMemoryOfCommand(_ command: [String]) async throws {
        let user = try OtherUser()
        let server = try SilentServer()
        _ = try await user.succeed("account", "add", "silent", server.url)
        let file = try user.program.folder.file("a", size: 1_000)
        #expect(unsafe chown(file.string, 65_534, 65_534) == 0)
        _ = try await user.succeed("add", "silent", file.string)
        let running = try user.start(command)
        let connection = await server.connection()
        defer { try? connection.close() }
        user.expectHiddenMemory(of: running.processID)
        running.send(SIGKILL)
        #expect(await running.result().wasKilled)
    }
}
