import Locking
import TransportSFTP

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
