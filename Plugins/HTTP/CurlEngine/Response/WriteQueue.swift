import Locking
import TransferCore

/// A first-in, first-out queue of buffers with bytes of a response's body. The loop's thread adds buffers, and one writer thread at a time writes
/// them to the sink.
final class WriteQueue: Sendable {
    private struct State {
        var queued: [WriteBuffer] = []
        /// The buffers that were written, or whose write failed, and that the loop has not taken back yet.
        var written: [WriteBuffer] = []
        /// The number of unwritten buffers, including the one being written.
        var unwritten = 0
        /// The number of unwritten buffers at which to notify the loop; nil if no notification is requested.
        var notifiesAt: Int?
        /// Whether a writer thread serves the queue or has been requested.
        var isServed = false
        var isClosed = false
    }

    /// The maximum number of buffers that a writer thread writes before other downloads can use it.
    private static let maximumBuffersPerRun = 16
    private let state = Locked(State())

    /// Adds a buffer.
    ///
    /// - Returns: Whether the caller must request a writer thread.
    func append(_ buffer: WriteBuffer) -> Bool {
        state.withLock { state in
            state.queued.append(buffer)
            state.unwritten += 1
            defer { state.isServed = true }
            return !state.isServed
        }
    }

    /// Drops the buffers that no writer thread has started to write. The queue then writes no more buffers.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.queued = []
        }
    }

    /// Removes and returns the buffers that were written, or whose write failed. Called by the loop.
    func collectWritten() -> [WriteBuffer] {
        state.withLock { state in
            defer { state.written = [] }
            return state.written
        }
    }

    /// Makes the queue notify the loop when at most `count` buffers remain unwritten, or when a write fails.
    ///
    /// - Returns: True if at most `count` buffers are unwritten now, or the queue is closed. The loop is then notified only if a write fails.
    func requestNotification(atUnwritten count: Int) -> Bool {
        state.withLock { state in
            let isMet = state.unwritten <= count || state.isClosed
            state.notifiesAt = isMet ? nil : count
            return isMet
        }
    }

    /// Writes buffers to the sink, including buffers that arrive during the call, until none is left or a write fails. Returns after at most
    /// ``maximumBuffersPerRun`` buffers, so that other downloads can use the thread. Called on a writer thread.
    ///
    /// - Parameter notifyLoop: Notifies the loop. Called when the number of unwritten buffers has fallen to the requested number, and when a
    ///   write fails.
    /// - Returns: Whether the caller must request a writer thread again, because buffers may remain.
    func write(to sink: any HTTPResponseSink, notifyLoop: () -> Void) -> Bool {
        for _ in 0..<Self.maximumBuffersPerRun {
            guard let buffer = next() else { return false }
            if recordWritten(DownloadState.write(buffer, to: sink)) { notifyLoop() }
        }
        return true
    }

    private func next() -> WriteBuffer? {
        state.withLock { state in
            guard !state.isClosed, !state.queued.isEmpty else {
                state.isServed = false
                return nil
            }
            return state.queued.removeFirst()
        }
    }

    /// Stores a buffer after its write.
    ///
    /// - Returns: Whether to notify the loop.
    private func recordWritten(_ buffer: WriteBuffer) -> Bool {
        state.withLock { state in
            state.written.append(buffer)
            state.unwritten -= 1
            let hasFailed = buffer.failure != nil
            if hasFailed {
                state.isClosed = true
                state.queued = []
            }
            guard hasFailed || state.unwritten <= state.notifiesAt ?? -1 else { return false }
            state.notifiesAt = nil
            return true
        }
    }
}

/// A budget of extra buffers (``WriteBuffer``), shared by all transfers of a loop. The two buffers that each transfer can always have do not count
/// against the budget. Used only on the thread of ``CurlLoop``.
final class BufferBudget {
    /// The number of extra buffers that can still be allocated. The initial 16 buffers of 256 KiB are 4 MiB of memory.
    var left = 16
}
