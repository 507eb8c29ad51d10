import Foundation
import Logging
import SystemPackage
import Testing
import TransferControl
import TransferKit

/// Commands that run while a starting owner has locked the storage folder, but has not opened its socket yet.
@Suite(.serialized) struct StartingOwnerTests {
    @Test(arguments: [("start", "running"), ("stop", "stopped"), ("drain", "stopped")])
    func modeChangeWaitsForStartingOwner(command: String, mode: String) async throws {
        let program = try TransferQ()
        let result = try await program.result(of: ["queue", command, "--json"], whileOwnerStarts: .application)
        #expect(result.status == 0, "\(result.testDescription)")
        #expect(try result.objects().first?["mode"] as? String == mode)
    }

    @Test(arguments: [["run"], ["agent", "run"]]) func rejectsSecondOwner(command: [String]) async throws {
        let program = try TransferQ()
        let result = try await program.result(of: command, whileOwnerStarts: .agent)
        #expect(result.status == 3)
        #expect(
            result.diagnostics.contains("The agent (process \(ProcessInfo.processInfo.processIdentifier)) already runs the queue"),
            "\(result.testDescription)")
    }
}

extension TransferQ {
    /// Starts a command while this process owns the storage folder but has not opened its socket. Opens the socket once the command has
    /// opened the lock file.
    fileprivate func result(of command: [String], whileOwnerStarts role: QueueOwner.Role) async throws -> CommandResult {
        let queue = try await TransferQueue(storage: .folder(store), transports: [])
        let watch = try OwnerLockWatch(store: store)
        let running = try start(command)
        let server = try await server(for: queue, as: role, after: watch)
        let result = await running.result()
        await server.shutDownQueue()
        return result
    }

    /// Opens the socket of the starting owner once `watch` reports that the command has opened the lock file. Uses a separate thread,
    /// because a command waits at most ten seconds for an owner, and the shared threads of the tests may be busy for longer.
    private func server(for queue: TransferQueue, as role: QueueOwner.Role, after watch: OwnerLockWatch) async throws -> ControlServer {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        try watch.waitForOpening()
                        return try ControlServer(for: queue, as: role, logger: Logger(label: "test"))
                    })
            }
        }
    }
}
