import Locking
import SSHEngine
import TransferCore

/// A channel handler for tests. It sends the given bytes, and records the received bytes.
final class TestHandler: SSHChannelHandler {
    private struct State {
        var toSend: [[UInt8]] = []
        var received: [UInt8] = []
        var receivedCount = 0
        var ends: [TransferError?] = []
        var waiters: [@Sendable (borrowing Progress) -> Bool] = []
    }

    struct Progress {
        let received: Int
        let hasEnded: Bool
    }

    private let state = Locked(State())
    private let storesBytes: Bool

    /// - Parameter storesBytes: Whether to store received bytes, rather than only count them.
    init(storesBytes: Bool = true) {
        self.storesBytes = storesBytes
    }

    func receive(_ bytes: UnsafeRawBufferPointer) {
        let copy = storesBytes ? unsafe [UInt8](bytes) : []
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

    /// Queues bytes to send. If the channel is open, the caller must then wake the channel.
    func send(_ bytes: [UInt8]) {
        state.withLock { $0.toSend.append(bytes) }
    }

    var received: [UInt8] { state.withLock { $0.received } }
    var ends: [TransferError?] { state.withLock { $0.ends } }

    /// Waits until `count` bytes have arrived in total, or until the channel ends.
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
