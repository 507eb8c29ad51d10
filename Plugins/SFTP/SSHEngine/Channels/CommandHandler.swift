import Locking
import TransferCore

/// Sends a command's input and collects its output.
final class CommandHandler: SSHChannelHandler {
    private struct State {
        var input: [UInt8]
        var output: [UInt8] = []
        var isTruncated = false
    }

    private let state: Locked<State>
    private let outputLimit: Int

    init(input: [UInt8], outputLimit: Int) {
        state = Locked(State(input: input))
        self.outputLimit = outputLimit
    }

    func receive(_ bytes: UnsafeRawBufferPointer) {
        // Copies the bytes before taking the lock, because a pointer can't be passed to the closure.
        let received = unsafe [UInt8](bytes)
        state.withLock { state in
            let kept = min(received.count, outputLimit - state.output.count)
            state.output += received.prefix(kept)
            if kept < received.count { state.isTruncated = true }
        }
    }

    func bytesToSend() -> [UInt8] {
        state.withLock { state in
            defer { state.input = [] }
            return state.input
        }
    }

    func end(_ error: TransferError?) {}

    func result(_ end: ChannelRequest.End) -> SSHCommandResult {
        state.withLock { state in
            SSHCommandResult(
                status: end.status, signal: end.signal, output: state.output, errorOutput: end.errorOutput,
                isOutputTruncated: state.isTruncated)
        }
    }
}
