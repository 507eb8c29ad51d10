import Foundation
import TransferCore

/// Chunks on their way from a ``StreamWriter`` to the queue; whoever writes waits while there are too many.
final class ByteChannel: Sendable {
    private struct State: Sendable {
        var chunks: [Data] = []
        var buffered = 0
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

    /// No more will be read: who writes gets this error.
    func refuse(_ error: any Error) {
        state.withLock { state in
            if state.refusal == nil { state.refusal = error }
            state.chunks = []
        }
        changes.send()
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
