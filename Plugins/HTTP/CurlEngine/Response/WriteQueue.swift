import Locking
import TransferCore

/// A first-in, first-out queue of chunks of a response's body. The loop's thread adds chunks, and one writer thread at a time writes them to the
/// sink.
final class WriteQueue: Sendable {
    private struct State {
        var chunks: [WriteBuffer] = []
        /// The written and failed chunks that the loop has not collected yet.
        var written: [WriteBuffer] = []
        /// The number of unwritten chunks, including the one being written.
        var unwritten = 0
        /// The number of unwritten chunks at which to notify the loop; nil if no notification is requested.
        var notifiesAt: Int?
        /// Whether a writer thread serves the queue or has been requested.
        var isServed = false
        var isClosed = false
    }

    private static let maximumChunksPerRun = 16
    private let state = Locked(State())

    /// - Returns: Whether the caller must request a writer thread.
    func append(_ chunk: WriteBuffer) -> Bool {
        state.withLock { state in
            state.chunks.append(chunk)
            state.unwritten += 1
            defer { state.isServed = true }
            return !state.isServed
        }
    }

    /// Drops the chunks that have not been written yet. Later chunks are never written.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.chunks = []
        }
    }

    /// Removes and returns the chunks that were written or failed. Called by the loop.
    func collectWritten() -> [WriteBuffer] {
        state.withLock { state in
            defer { state.written = [] }
            return state.written
        }
    }

    /// Requests a notification of the loop when at most `count` chunks remain unwritten, or when a chunk fails.
    ///
    /// - Returns: True if at most `count` chunks are unwritten now, or the queue is closed. The loop is then notified only if a chunk fails.
    func requestNotification(atUnwritten count: Int) -> Bool {
        state.withLock { state in
            let isMet = state.unwritten <= count || state.isClosed
            state.notifiesAt = isMet ? nil : count
            return isMet
        }
    }

    /// Writes chunks to the sink, including chunks that arrive during the call, until no chunk is left or one fails. Returns after at most
    /// ``maximumChunksPerRun`` chunks, so that other downloads can use the thread. Called on a writer thread.
    ///
    /// - Parameter notifyLoop: Notifies the loop. Called when the number of unwritten chunks has fallen to the requested number, and when a
    ///   chunk fails.
    /// - Returns: Whether the caller must request a writer thread again, because chunks may remain.
    func write(to sink: any HTTPResponseSink, notifyLoop: () -> Void) -> Bool {
        for _ in 0..<Self.maximumChunksPerRun {
            guard let chunk = next() else { return false }
            if recordWritten(DownloadState.write(chunk, to: sink)) { notifyLoop() }
        }
        return true
    }

    private func next() -> WriteBuffer? {
        state.withLock { state in
            guard !state.isClosed, !state.chunks.isEmpty else {
                state.isServed = false
                return nil
            }
            return state.chunks.removeFirst()
        }
    }

    /// - Returns: Whether to notify the loop.
    private func recordWritten(_ chunk: WriteBuffer) -> Bool {
        state.withLock { state in
            state.written.append(chunk)
            state.unwritten -= 1
            let hasFailed = chunk.failure != nil
            if hasFailed {
                state.isClosed = true
                state.chunks = []
            }
            guard hasFailed || state.unwritten <= state.notifiesAt ?? -1 else { return false }
            state.notifiesAt = nil
            return true
        }
    }
}

/// A budget of extra chunks (``WriteBuffer``), shared by all transfers of a loop. The two chunks that each transfer can always have do not count
/// against the budget. Used only on the thread of ``CurlLoop``.
final class ChunkAllowance {
    /// 16 chunks of 256 KiB are 4 MiB of memory.
    var left = 16
}
