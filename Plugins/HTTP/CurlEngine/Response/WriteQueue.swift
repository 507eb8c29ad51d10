import Locking
import TransferCore

/// The pieces of an answer's body that are on their way to its sink, in order: filled by the loop's thread, and emptied by one writer thread at a
/// time.
final class WriteQueue: Sendable {
    private struct State {
        var chunks: [WriteChunk] = []
        /// What was written, or could not be, and the loop has not taken back.
        var written: [WriteChunk] = []
        /// How many are not written, the one included that is being written.
        var unwritten = 0
        /// The loop is to be called once no more than so many are not written.
        var callsAt: Int?
        /// Whether a writer thread is at it, or was asked to be.
        var isServed = false
        var isClosed = false
    }

    private static let chunksAtOnce = 16
    private let state = Locked(State())

    /// - Returns: Whether a writer thread is to be asked for.
    func append(_ chunk: WriteChunk) -> Bool {
        state.withLock { state in
            state.chunks.append(chunk)
            state.unwritten += 1
            defer { state.isServed = true }
            return !state.isServed
        }
    }

    /// Has no further chunk written.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.chunks = []
        }
    }

    /// Takes back what was written.
    func takeWritten() -> [WriteChunk] {
        state.withLock { state in
            defer { state.written = [] }
            return state.written
        }
    }

    /// Asks for a call once no more than so many chunks are not written, or one can't be.
    ///
    /// - Returns: Whether that is so already, and no call comes.
    func isWritten(downTo count: Int) -> Bool {
        state.withLock { state in
            let isSo = state.unwritten <= count || state.isClosed
            state.callsAt = isSo ? nil : count
            return isSo
        }
    }

    /// Lets the sink write the chunks, also those that come meanwhile, until there is none or one can't be written. Called on a writer thread, of
    /// which others want some time too: it ends after a while.
    ///
    /// - Parameter callLoop: Called when the loop asked for it.
    /// - Returns: Whether a writer thread is to be asked for again.
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

    /// - Returns: Whether the loop is to be called.
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

/// How many chunks the transfers of a loop may have together beyond those that each one needs. Confined to the loop's thread.
final class ChunkAllowance {
    /// Memory of 4 MiB in all.
    var left = 16
}
