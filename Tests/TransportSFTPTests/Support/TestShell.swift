import Foundation
import Locking
import ProcessFixture
import TransferCore
import TransportSFTP
import TransportSupport

/// Runs commands on this machine, as if it were the server.
final class TestShell: CommandRunner {
    private let path: String?
    private let before: @Sendable () throws -> Void
    private let inputs = Locked<[[UInt8]]>([])

    /// - Parameters:
    ///   - path: The folder of the only programs that there are; nil for all.
    ///   - before: Done before each command that computes something.
    init(path: String? = nil, before: @escaping @Sendable () throws -> Void = {}) {
        self.path = path
        self.before = before
    }

    /// What the commands read that were run.
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

/// Answers each command as a test says, when it says so.
final class HeldShell: CommandRunner {
    private let state = Locked<(inputs: [[UInt8]], answers: [AsyncStream<Void>.Continuation])>(([], []))
    private let answer: @Sendable ([UInt8]) -> [UInt8]

    /// - Parameter answer: What is printed for an input. The first command, which has none, is answered at once.
    init(_ answer: @escaping @Sendable ([UInt8]) -> [UInt8]) {
        self.answer = answer
    }

    /// The inputs of the commands so far, but for the first.
    var commands: [[UInt8]] { state.withLock { $0.inputs } }

    /// Answers all commands that are under way.
    func release() {
        let answers = state.withLock { state in
            defer { state.answers = [] }
            return state.answers
        }
        for continuation in answers { continuation.finish() }
    }

    func run(_ command: [UInt8], input: [UInt8]) async throws -> [UInt8] {
        if !input.isEmpty {
            let (stream, continuation) = AsyncStream<Void>.makeStream()
            state.withLock { state in
                state.inputs.append(input)
                state.answers.append(continuation)
            }
            for await _ in stream {}
            try Task.checkCancellation()
        }
        return answer(input)
    }
}
