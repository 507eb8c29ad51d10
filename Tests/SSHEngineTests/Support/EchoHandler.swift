import Locking
import SSHEngine
import ScriptedHTTP
import TransferCore

/// A channel handler that sends position-dependent bytes, and checks that the server sends the same bytes back.
final class EchoHandler: SSHChannelHandler {
    private struct State {
        var sent = 0
        var received = 0
        var firstDifference: Int?
        var hasEnded = false
        var error: TransferError?
        var waiter: CheckedContinuation<Void, Never>?

        mutating func takeWaiter(total: Int) -> CheckedContinuation<Void, Never>? {
            guard received >= total || hasEnded else { return nil }
            defer { waiter = nil }
            return waiter
        }
    }

    private let content: [UInt8]
    private let blockSize: Int
    private let state = Locked(State())

    init(size: Int, blockSize: Int = 30_000) {
        content = TemporaryFile.content(size: size)
        self.blockSize = blockSize
    }

    func receive(_ bytes: UnsafeRawBufferPointer) {
        let received = unsafe [UInt8](bytes)
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            let end = state.received + received.count
            if end > content.count || received != Array(content[state.received..<end]) {
                state.firstDifference = state.firstDifference ?? state.received
            }
            state.received = end
            return state.takeWaiter(total: content.count)
        }
        waiter?.resume()
    }

    func bytesToSend() -> [UInt8] {
        state.withLock { state in
            let block = Array(content[state.sent..<min(content.count, state.sent + blockSize)])
            state.sent += block.count
            return block
        }
    }

    func end(_ error: TransferError?) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.hasEnded = true
            state.error = error
            return state.takeWaiter(total: content.count)
        }
        waiter?.resume()
    }

    /// Waits until the server has sent all bytes back, or until the channel ends. Call this method at most once.
    func waitForAll() async {
        await withCheckedContinuation { continuation in
            let waiter = state.withLock { state in
                state.waiter = continuation
                return state.takeWaiter(total: content.count)
            }
            waiter?.resume()
        }
    }

    /// The number of correct bytes that the server has sent back, up to the start of the first received block with a difference.
    var echoed: Int { state.withLock { $0.firstDifference ?? $0.received } }
    var error: TransferError? { state.withLock { $0.error } }
}
