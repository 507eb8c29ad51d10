import Foundation
import Logging
import SystemPackage
import Testing
import TransferControl
import TransferKit

/// An owner has the store a moment before it has a socket.
@Suite(.serialized) struct StartingOwnerTests {
    @Test(arguments: [("start", "running"), ("stop", "stopped"), ("drain", "stopped")])
    func theModeOfTheQueue(command: String, mode: String) async throws {
        let program = try TransferQ()
        let result = try await program.result(of: ["queue", command, "--json"], whileOwnerStarts: .application)
        #expect(result.status == 0, "\(result.testDescription)")
        #expect(try result.objects().first?["mode"] as? String == mode)
    }

    @Test(arguments: [["run"], ["agent", "run"]]) func anotherOwner(command: [String]) async throws {
        let program = try TransferQ()
        let result = try await program.result(of: command, whileOwnerStarts: .agent)
        #expect(result.status == 3)
        #expect(
            result.diagnostics.contains("is run by the agent \(ProcessInfo.processInfo.processIdentifier)"), "\(result.testDescription)")
    }
}

extension TransferQ {
    /// Starts a command while this process has the store and no socket, and makes the socket when the command waits for the store.
    fileprivate func result(of command: [String], whileOwnerStarts role: QueueOwner.Role) async throws -> CommandResult {
        let queue = try await TransferQueue(storage: .folder(store), transports: [])
        let running = try start(command)
        let server = try await server(for: queue, as: role, beside: running.processID)
        let result = await running.result()
        await server.shutDownQueue()
        return result
    }

    /// On a thread of its own: a command waits ten seconds for an owner, and the threads that all tests share may be busy for longer.
    private func server(for queue: TransferQueue, as role: QueueOwner.Role, beside process: Int32) async throws -> ControlServer {
        let lock = store.appending("owner.lock").string
        return try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                while !openFiles(of: process).contains(lock) { Thread.sleep(forTimeInterval: 0.001) }
                continuation.resume(with: Result { try ControlServer(for: queue, as: role, logger: Logger(label: "test")) })
            }
        }
    }

    private func openFiles(of process: Int32) -> [String] {
        let folder = "/proc/\(process)/fd"
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return numbers.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
    }
}
