import Foundation
import Locking
import ProcessFixture
import TransferCore
import TransportSFTP
import TransportSupport

/// Runs the client's commands in a local shell, instead of on the server.
final class TestShell: CommandRunner {
    private let path: String?
    private let before: @Sendable () throws -> Void
    private let inputs = Locked<[[UInt8]]>([])

    /// - Parameters:
    ///   - path: The only folder in the search path, or nil for the search path of the tests.
    ///   - before: Called before each command that computes checksums.
    init(path: String? = nil, before: @escaping @Sendable () throws -> Void = {}) {
        self.path = path
        self.before = before
    }

    var commands: [[UInt8]] { inputs.withLock { $0 } }

    func run(_ command: [UInt8], input: [UInt8]) async throws -> [UInt8] {
        inputs.withLock { $0.append(input) }
        return try await withCheckedThrowingContinuation { continuation in
            do {
                try startThread { continuation.resume(with: Result { try self.runNow(command, input) }) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    private func runNow(_ command: [UInt8], _ input: [UInt8]) throws -> [UInt8] {
        if !input.isEmpty { try before() }
        let environment = path.map { ["PATH": $0] } ?? [:]
        return try [UInt8](
            StartedProgram.run(
                "/bin/sh", ["-c", String(decoding: command, as: UTF8.self)], environment: environment, input: Data(input)
            ).output)
    }
}
