import Locking
import SSHEngine
import TransferCore

/// A channel's handler for tests: sends given bytes, and records received ones.
final class TestHandler: SSHChannelHandler {
    private struct State {
        var toSend: [[UInt8]] = []
        var received: [UInt8] = []
        var receivedCount = 0
        var ends: [TransferError?] = []
        var waiters: [@Sendable (borrowing Progress) -> Bool] = []
    }

    /// The condition that a test waits for.
    struct Progress {
        let received: Int
        let hasEnded: Bool
    }

    private let state = Locked(State())
    private let keeps: Bool

    init(keeps: Bool = true) {
        self.keeps = keeps
    }

    func receive(_ bytes: UnsafeRawBufferPointer) {
        let copy = keeps ? unsafe [UInt8](bytes) : []
        let count = bytes.count
        state.withLock { state in
            state.received += copy
            state.receivedCount += count
        }
        notifyWaiters()
    }

    func bytesToSend() -> [UInt8] {
        state.withLock { $0.toSend.isEmpty ? [] : $0.toSend.removeFirst() }
    }

    func end(_ error: TransferError?) {
        state.withLock { $0.ends.append(error) }
        notifyWaiters()
    }

    /// If the channel is open, it must be woken afterwards.
    func send(_ chunk: [UInt8]) {
        state.withLock { $0.toSend.append(chunk) }
    }

    var received: [UInt8] { state.withLock { $0.received } }
    var ends: [TransferError?] { state.withLock { $0.ends } }

    /// Returns when this many bytes have arrived in total, or at the end of the channel.
    func waitFor(bytes count: Int) async {
        await wait { $0.received >= count || $0.hasEnded }
    }

    func waitForEnd() async {
        await wait { $0.hasEnded }
    }

    private func wait(until condition: @escaping @Sendable (borrowing Progress) -> Bool) async {
        await withCheckedContinuation { continuation in
            state.withLock { state in
                state.waiters.append { progress in
                    guard condition(progress) else { return false }
                    continuation.resume()
                    return true
                }
            }
            notifyWaiters()
        }
    }

    private func notifyWaiters() {
        state.withLock { state in
            let progress = Progress(received: state.receivedCount, hasEnded: !state.ends.isEmpty)
            state.waiters.removeAll { $0(progress) }
        }
    }
}
