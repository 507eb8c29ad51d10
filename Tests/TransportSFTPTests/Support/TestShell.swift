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

    /// The inputs of the commands so far.
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

/// Runs commands that complete with a given output when the test calls ``release()``.
final class HeldShell: CommandRunner {
    private let state = Locked<(inputs: [[UInt8]], continuations: [AsyncStream<Void>.Continuation])>(([], []))
    private let output: @Sendable ([UInt8]) -> [UInt8]

    /// - Parameter output: Returns the output for an input. The first command has no input, and completes immediately.
    init(_ output: @escaping @Sendable ([UInt8]) -> [UInt8]) {
        self.output = output
    }

    /// The inputs of all commands so far except the first, which has no input.
    var commands: [[UInt8]] { state.withLock { $0.inputs } }

    /// Completes all running commands.
    func release() {
        let continuations = state.withLock { state in
            defer { state.continuations = [] }
            return state.continuations
        }
        for continuation in continuations { continuation.finish() }
    }

    func run(_ command: [UInt8], input: [UInt8]) async throws -> [UInt8] {
        if !input.isEmpty {
            let (stream, continuation) = AsyncStream<Void>.makeStream()
            state.withLock { state in
                state.inputs.append(input)
                state.continuations.append(continuation)
            }
            for await _ in stream {}
            try Task.checkCancellation()
        }
        return output(input)
    }
}
