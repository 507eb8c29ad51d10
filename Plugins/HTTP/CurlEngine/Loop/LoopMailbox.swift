import CCurl
import Locking
import TransferCore

/// A request of another thread to the loop's thread.
enum LoopCommand: Sendable {
    case start(PendingRequest)
    case cancel(PendingRequest.ID)
    case bodyRead(PendingRequest.ID, FileChunk)
    case bodyGrown(PendingRequest.ID)
    case bodyWritten(PendingRequest.ID)
    case stop
}

/// The only channel from other threads to the loop's thread.
@safe final class LoopMailbox: Sendable {
    private struct State {
        var commands: [LoopCommand] = []
        var lastID: PendingRequest.ID = 0
        /// Whether the loop waits, or is about to, without commands, and was not woken.
        var isLoopWaiting = false
        var isClosed = false
        var hasEnded = false
        var closeWaiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())
    /// Used by the loop's thread, which frees it after closing the mailbox; and here, under the lock of the open mailbox, to wake that
    /// thread.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer  // Any thread may call curl_multi_wakeup(3), the only call made here.

    init(multi: UnsafeMutableRawPointer) {
        unsafe self.multi = unsafe multi
    }

    func nextTransferID() -> PendingRequest.ID {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    /// Adds a command and wakes the loop if it waits.
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

    /// Called by the loop's thread only.
    func takeCommands() -> [LoopCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            state.isLoopWaiting = false
            return state.commands
        }
    }

    /// Makes the next command wake the loop. Called by the loop's thread only, before it waits.
    ///
    /// - Returns: Whether the loop can wait: false if there are commands.
    func beginWaiting() -> Bool {
        state.withLock { state in
            state.isLoopWaiting = state.commands.isEmpty
            return state.isLoopWaiting
        }
    }

    /// Takes no further commands. Called by the loop's thread only, before it frees what commands refer to.
    ///
    /// - Returns: The commands that came too late.
    func close() -> [LoopCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            state.isClosed = true
            return state.commands
        }
    }

    /// Lets ``waitUntilClosed()`` return; the last action of the loop's thread.
    func noteClosed() {
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
