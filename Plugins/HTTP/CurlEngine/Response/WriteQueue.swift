import Locking
import TransferCore

/// A first-in, first-out queue of chunks of a response's body. The loop's thread adds chunks, and one writer thread at a time writes them to the
/// sink.
final class WriteQueue: Sendable {
    private struct State {
        var chunks: [WriteChunk] = []
        /// Chunks that were written or failed, and that the loop has not collected yet.
        var written: [WriteChunk] = []
        /// The number of unwritten chunks, including the one being written.
        var unwritten = 0
        /// The number of unwritten chunks at which to notify the loop; nil to not notify it.
        var callsAt: Int?
        /// Whether a writer thread serves the queue or has been requested.
        var isServed = false
        var isClosed = false
    }

    private static let chunksAtOnce = 16
    private let state = Locked(State())

    /// - Returns: Whether to request a writer thread.
    func append(_ chunk: WriteChunk) -> Bool {
        state.withLock { state in
            state.chunks.append(chunk)
            state.unwritten += 1
            defer { state.isServed = true }
            return !state.isServed
        }
    }

    /// Drops the chunks that are not written yet, and rejects further ones.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.chunks = []
        }
    }

    /// Returns the written chunks to the loop.
    func takeWritten() -> [WriteChunk] {
        state.withLock { state in
            defer { state.written = [] }
            return state.written
        }
    }

    /// Requests a notification of the loop when at most `count` chunks are unwritten, or one has failed.
    ///
    /// - Returns: Whether this condition is already met. If so, no notification follows.
    func isWritten(downTo count: Int) -> Bool {
        state.withLock { state in
            let isSo = state.unwritten <= count || state.isClosed
            state.callsAt = isSo ? nil : count
            return isSo
        }
    }

    /// Writes chunks to the sink, including chunks that arrive during the call, until none is left or one fails. Returns after at most
    /// ``chunksAtOnce`` chunks, so that other downloads can use the thread. Called on a writer thread.
    ///
    /// - Parameter callLoop: Notifies the loop. Called only if the loop has requested a notification.
    /// - Returns: Whether to request a writer thread again.
    func write(to sink: any HTTPResponseSink, callLoop: () -> Void) -> Bool {
        for _ in 0..<Self.chunksAtOnce {
            guard let chunk = next() else { return false }
            if recordWritten(DownloadState.write(chunk, to: sink)) { callLoop() }
        }
        return true
    }

    private func next() -> WriteChunk? {
        state.withLock { state in
            guard !state.isClosed, !state.chunks.isEmpty else {
                state.isServed = false
                return nil
            }
            return state.chunks.removeFirst()
        }
    }

    /// - Returns: Whether to notify the loop.
    private func recordWritten(_ chunk: WriteChunk) -> Bool {
        state.withLock { state in
            state.written.append(chunk)
            state.unwritten -= 1
            let hasFailed = chunk.failure != nil
            if hasFailed {
                state.isClosed = true
                state.chunks = []
            }
            guard hasFailed || state.unwritten <= state.callsAt ?? -1 else { return false }
            state.callsAt = nil
            return true
        }
    }
}

/// The number of additional chunks that all transfers of a loop may have together, beyond those that each one needs. Confined to the loop's thread.
final class ChunkAllowance {
    /// 16 chunks of 256 KiB are 4 MiB of memory.
    var left = 16
}
