import Foundation
import Locking
import TransferCore

/// Chunks on their way from a ``StreamWriter`` to the queue; whoever writes waits while there are too many.
final class ByteChannel: Sendable {
    private struct State: Sendable {
        var chunks: [Data] = []
        var buffered = 0
        /// How many bytes were written to the channel, and how many of them are in the storage folder.
        var accepted: Int64 = 0
        var stored: Int64 = 0
        /// Whether all is stored, and that it is all.
        var isSealed = false
        /// Set when no more will be written.
        var end: Result<Void, any Error>?
        /// Set when no more will be read.
        var refusal: (any Error)?
    }

    private let capacity: Int
    private let state = Locked(State())
    private let changes = ChangeSignal()

    init(capacity: Int) {
        self.capacity = max(1, capacity)
    }

    /// Returns when the chunk is in the buffer: when it holds less than its capacity.
    func write(_ chunk: Data) async throws {
        while true {
            let version = changes.version
            let isTaken = try state.withLock { state in
                if let refusal = state.refusal { throw refusal }
                guard state.end == nil else {
                    throw TransferError(.permanent, .internalFailure, "The stream is finished; nothing can be written to it any more.")
                }
                guard state.buffered < capacity else { return false }
                state.chunks.append(chunk)
                state.buffered += chunk.count
                state.accepted += Int64(chunk.count)
                return true
            }
            if isTaken { return changes.send() }
            try await changes.wait(after: version)
        }
    }

    /// No more will be written; the first end counts.
    func end(_ result: Result<Void, any Error>) {
        state.withLock { if $0.end == nil { $0.end = result } }
        changes.send()
    }

    /// Takes what the reader tells of the chunks.
    func note(_ news: StreamNews) {
        state.withLock { state in
            switch news {
            case .stored(let count): state.stored += Int64(count)
            case .sealed: state.isSealed = true
            case .refused(let error):
                // After the last byte was stored nobody writes who could be told.
                if state.refusal == nil, !state.isSealed { state.refusal = error }
                state.chunks = []
            }
        }
        changes.send()
    }

    /// Returns when all that was written before is stored, and, if that was all, so is its end.
    func flush() async throws {
        let target = state.withLock { $0.accepted }
        while true {
            let version = changes.version
            let isStored = try state.withLock { state in
                if state.isSealed { return true }
                if let refusal = state.refusal { throw refusal }
                guard let end = state.end else { return state.stored >= target }
                try end.get()
                return false
            }
            if isStored { return }
            try await changes.wait(after: version)
        }
    }

    /// All that is buffered, as soon as there is anything; nil at the end.
    func read() async throws -> [Data]? {
        while true {
            let version = changes.version
            let (chunks, end) = state.withLock { state in
                defer {
                    state.chunks = []
                    state.buffered = 0
                }
                return (state.chunks, state.end)
            }
            if !chunks.isEmpty {
                changes.send()
                return chunks
            }
            if let end {
                try end.get()
                return nil
            }
            try await changes.wait(after: version)
        }
    }
}
