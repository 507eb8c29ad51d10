import CCurl
import Locking
import TransferCore

/// What other threads ask of the loop's thread.
enum LoopCommand: Sendable {
    case start(TransferOrder)
    case cancel(TransferOrder.ID)
    case bodyRead(TransferOrder.ID, FileChunk)
    case bodyGrown(TransferOrder.ID)
    case bodyWritten(TransferOrder.ID)
    case stop
}

/// The one way from other threads to the loop's thread.
@safe final class LoopMailbox: Sendable {
    private struct State {
        var commands: [LoopCommand] = []
        var lastID: TransferOrder.ID = 0
        /// Whether the loop waits, or is about to, with no command left, and nobody has woken it.
        var isLoopWaiting = false
        var isClosed = false
        var hasEnded = false
        var closeWaiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())
    /// Used by the loop's thread, which frees it after it closed the mailbox; and here, under the lock of the open mailbox, to wake that thread.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer  // Any thread may call curl_multi_wakeup(3), the only call made here.

    init(multi: UnsafeMutableRawPointer) {
        unsafe self.multi = unsafe multi
    }

    func nextTransferID() -> TransferOrder.ID {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    /// Hands a command over and wakes the loop, if it waits.
    ///
    /// - Returns: Whether the loop will see it; false once it has ended.
    @discardableResult
    func post(_ command: LoopCommand) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.commands.append(command)
            if state.isLoopWaiting { unsafe curl_multi_wakeup(multi) }
            state.isLoopWaiting = false
            return true
        }
    }

    /// Called by the loop's thread alone.
    func takeCommands() -> [LoopCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            state.isLoopWaiting = false
            return state.commands
        }
    }

    /// Has commands wake the loop from now on, until the next one does. Called by the loop's thread alone, before it waits.
    ///
    /// - Returns: Whether it may wait: not if there are commands already.
    func beginWaiting() -> Bool {
        state.withLock { state in
            state.isLoopWaiting = state.commands.isEmpty
            return state.isLoopWaiting
        }
    }

    /// Takes no further commands. Called by the loop's thread alone, before it frees what commands refer to.
    ///
    /// - Returns: The commands that came too late.
    func close() -> [LoopCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            state.isClosed = true
            return state.commands
        }
    }

    /// Lets ``waitUntilClosed()`` return; the last act of the loop's thread.
    func tellClosed() {
        let waiters = state.withLock { state in
            defer { state.closeWaiters = [] }
            state.hasEnded = true
            return state.closeWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func waitUntilClosed() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if !state.hasEnded { state.closeWaiters.append(continuation) }
                return state.hasEnded
            }
            if hasEnded { continuation.resume() }
        }
    }
}
