import CCurl
import Locking
import TransferCore

/// A command from another thread to the loop's thread.
enum LoopCommand: Sendable {
    case start(PendingRequest)
    case cancel(PendingRequest.ID)
    /// A reader thread has filled a buffer with bytes of a file in the request's body, or failed to read them.
    case uploadBufferFilled(PendingRequest.ID, FileReadBuffer)
    /// The ``HTTPBodyStream`` of the request's body has more bytes, or has ended.
    case uploadStreamGrew(PendingRequest.ID)
    /// The number of unwritten buffers of the response's body has fallen to the requested maximum
    /// (``WriteQueue/requestNotification(atUnwritten:)``), or a write failed.
    case downloadWritten(PendingRequest.ID)
    case stop
}

/// Passes commands from other threads to the loop's thread. Other threads affect the loop only through its mailbox.
@safe final class LoopMailbox: Sendable {
    private struct State {
        var commands: [LoopCommand] = []
        var lastID: PendingRequest.ID = 0
        /// Whether the next command must wake the loop: the loop is waiting, or about to wait.
        var needsWakeUp = false
        var isClosed = false
        var hasEnded = false
        var endWaiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())
    /// libcurl's multi handle. The loop's thread uses it, and frees it after closing the mailbox. This class uses the handle only to wake
    /// that thread, under the lock and while the mailbox is open.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer  // Any thread may call curl_multi_wakeup(3). This class makes no other call.

    init(multi: UnsafeMutableRawPointer) {
        unsafe self.multi = unsafe multi
    }

    func nextRequestID() -> PendingRequest.ID {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    /// Adds a command, and wakes the loop if it is waiting.
    ///
    /// - Returns: Whether the loop will receive the command; false after the mailbox was closed.
    @discardableResult
    func post(_ command: LoopCommand) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.commands.append(command)
            if state.needsWakeUp { unsafe curl_multi_wakeup(multi) }
            state.needsWakeUp = false
            return true
        }
    }

    /// Removes and returns all commands. Called only on the loop's thread.
    func takeCommands() -> [LoopCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            state.needsWakeUp = false
            return state.commands
        }
    }

    /// Prepares the loop to wait, so that the next command wakes it. Called only on the loop's thread.
    ///
    /// - Returns: Whether the loop may wait; false if there are commands.
    func beginWaiting() -> Bool {
        state.withLock { state in
            state.needsWakeUp = state.commands.isEmpty
            return state.needsWakeUp
        }
    }

    /// Rejects further commands. Called only on the loop's thread, before the loop frees the objects that commands use.
    ///
    /// - Returns: The commands that the loop has not executed.
    func close() -> [LoopCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            state.isClosed = true
            return state.commands
        }
    }

    /// Resumes the callers of ``waitUntilEnded()``. The loop's thread calls this method last.
    func resumeEndWaiters() {
        let waiters = state.withLock { state in
            defer { state.endWaiters = [] }
            state.hasEnded = true
            return state.endWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func waitUntilEnded() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if !state.hasEnded { state.endWaiters.append(continuation) }
                return state.hasEnded
            }
            if hasEnded { continuation.resume() }
        }
    }
}
