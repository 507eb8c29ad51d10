import Locking
import SSHEngine
import TransferCore

/// A channel's other end in a test: sends what it is given, and hands out what comes.
final class TestHandler: SSHChannelHandler {
    private struct State {
        var toSend: [[UInt8]] = []
        var received: [UInt8] = []
        var receivedCount = 0
        var ends: [TransferError?] = []
        var waiters: [@Sendable (borrowing Progress) -> Bool] = []
    }

    /// What a test waits for.
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
        tell()
    }

    func bytesToSend() -> [UInt8] {
        state.withLock { $0.toSend.isEmpty ? [] : $0.toSend.removeFirst() }
    }

    func end(_ error: TransferError?) {
        state.withLock { $0.ends.append(error) }
        tell()
    }

    /// To be followed by a wake-up of the channel, if it is open.
    func send(_ chunk: [UInt8]) {
        state.withLock { $0.toSend.append(chunk) }
    }

    var received: [UInt8] { state.withLock { $0.received } }
    var ends: [TransferError?] { state.withLock { $0.ends } }

    /// Waits until so many bytes came in all, or the end.
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
            tell()
        }
    }

    private func tell() {
        state.withLock { state in
            let progress = Progress(received: state.receivedCount, hasEnded: !state.ends.isEmpty)
            state.waiters.removeAll { $0(progress) }
        }
    }
}
