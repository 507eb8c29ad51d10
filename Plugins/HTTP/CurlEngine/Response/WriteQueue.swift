import Locking
import TransferCore

/// The pieces of a response's body on their way to the sink, in order: filled by the loop's thread, and emptied by one writer thread at a
/// time.
final class WriteQueue: Sendable {
    private struct State {
        var chunks: [WriteChunk] = []
        /// Chunks that were written, or failed, and that the loop has not taken back.
        var written: [WriteChunk] = []
        /// The number of unwritten chunks, including the one being written.
        var unwritten = 0
        /// The loop is called when at most this many are unwritten.
        var callsAt: Int?
        /// Whether a writer thread serves the queue, or was requested.
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

    /// Keeps further chunks from being written.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.chunks = []
        }
    }

    /// Takes back written chunks.
    func takeWritten() -> [WriteChunk] {
        state.withLock { state in
            defer { state.written = [] }
            return state.written
        }
    }

    /// Requests a call when at most `count` chunks are unwritten, or one has failed.
    ///
    /// - Returns: Whether that is already so, and no call follows.
    func isWritten(downTo count: Int) -> Bool {
        state.withLock { state in
            let isSo = state.unwritten <= count || state.isClosed
            state.callsAt = isSo ? nil : count
            return isSo
        }
    }

    /// Writes the chunks to the sink, also those that arrive during that, until none is left or one fails. Called on a writer thread, and
    /// returns after a while to let others use the thread.
    ///
    /// - Parameter callLoop: Called when the loop requested it.
    /// - Returns: Whether to request a writer thread again.
    func write(to sink: any HTTPResponseSink, callLoop: () -> Void) -> Bool {
        for _ in 0..<Self.chunksAtOnce {
            guard let chunk = next() else { return false }
            if handBack(DownloadState.write(chunk, to: sink)) { callLoop() }
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

    /// - Returns: Whether to call the loop.
    private func handBack(_ chunk: WriteChunk) -> Bool {
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

/// The number of chunks that the transfers of a loop can have in total beyond those that each one needs. Confined to the loop's thread.
final class ChunkAllowance {
    /// Memory of 4 MiB in all.
    var left = 16
}
