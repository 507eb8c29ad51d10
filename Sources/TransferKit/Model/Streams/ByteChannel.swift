import Foundation
import Locking
import TransferCore

/// A bounded buffer of bytes between a ``StreamWriter`` and the queue. A write waits while the buffer is full.
final class ByteChannel: Sendable {
    private struct State: Sendable {
        var buffers: [Data] = []
        var bufferedBytes = 0
        /// The number of bytes that were written to the channel.
        var accepted: Int64 = 0
        /// The number of accepted bytes that are in the storage folder.
        var stored: Int64 = 0
        /// Whether all bytes are stored, and the stored stream is marked as complete.
        var isSealed = false
        /// How the writer ended the stream; nil while the writer may write.
        var end: Result<Void, any Error>?
        /// Why the queue stopped reading; nil while the queue reads.
        var refusal: (any Error)?
    }

    private let capacity: Int
    private let state = Locked(State())
    private let changes = ChangeSignal()

    init(capacity: Int) {
        self.capacity = max(1, capacity)
    }

    /// Waits until the buffer holds less than its capacity, then adds all of the data, even if it exceeds the remaining room.
    ///
    /// - Throws: The reason why the stream accepts no more bytes; `CancellationError` if the task is cancelled while it waits.
    func write(_ data: Data) async throws {
        while true {
            let version = changes.version
            let isAccepted = try state.withLock { state in
                guard try Self.room(capacity, state) > 0 else { return false }
                Self.append(data, to: &state)
                return true
            }
            if isAccepted { return changes.send() }
            try await changes.wait(after: version)
        }
    }

    /// Adds as many bytes of the data as the buffer has room for, without waiting. Returns the number of added bytes.
    func tryWrite(_ data: some DataProtocol) throws -> Int {
        let count = try state.withLock { state in
            let count = min(data.count, try Self.room(capacity, state))
            // Copy only these bytes, because the caller passes the rest again.
            if count > 0 { Self.append(Data(data.prefix(count)), to: &state) }
            return count
        }
        if count > 0 { changes.send() }
        return count
    }

    /// Whether a write would return or throw without waiting.
    var hasRoom: Bool { state.withLock { (try? Self.room(capacity, $0)) ?? 1 } > 0 }

    func waitForRoom() async throws {
        while true {
            let version = changes.version
            if try state.withLock({ try Self.room(capacity, $0) }) > 0 { return }
            try await changes.wait(after: version)
        }
    }

    private static func room(_ capacity: Int, _ state: State) throws -> Int {
        if let refusal = state.refusal { throw refusal }
        guard state.end == nil else { throw TransferError(.permanent, .internalFailure, "Cannot write to a finished stream.") }
        return max(0, capacity - state.bufferedBytes)
    }

    private static func append(_ data: Data, to state: inout State) {
        state.buffers.append(data)
        state.bufferedBytes += data.count
        state.accepted += Int64(data.count)
    }

    func end(_ result: Result<Void, any Error>) {
        state.withLock { if $0.end == nil { $0.end = result } }
        changes.send()
    }

    func handle(_ report: StreamReport) {
        state.withLock { state in
            switch report {
            case .stored(let count): state.stored += Int64(count)
            case .sealed: state.isSealed = true
            case .refused(let error):
                // Once the last byte is stored, no writer needs the error.
                if state.refusal == nil, !state.isSealed { state.refusal = error }
                state.buffers = []
            }
        }
        changes.send()
    }

    /// Waits until all bytes written so far are stored and, after the end of the stream, until the stored stream is marked as complete.
    ///
    /// - Throws: The reason why the queue stopped reading; the error with which the writer ended the stream; `CancellationError`.
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

    /// Waits for bytes, and returns all buffered bytes; nil at the end of the stream.
    ///
    /// - Throws: The error with which the writer ended the stream; `CancellationError` if the task is cancelled while it waits.
    func read() async throws -> [Data]? {
        while true {
            let version = changes.version
            let (buffers, end) = state.withLock { state in
                defer {
                    state.buffers = []
                    state.bufferedBytes = 0
                }
                return (state.buffers, state.end)
            }
            if !buffers.isEmpty {
                changes.send()
                return buffers
            }
            if let end {
                try end.get()
                return nil
            }
            try await changes.wait(after: version)
        }
    }
}
