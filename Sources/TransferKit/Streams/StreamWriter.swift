public import Foundation
import TransferCore

/// Where an app writes the bytes of an item whose length it need not know; made with ``TransferItem/stream(as:length:bufferSize:ahead:)``.
///
/// As a bound pair of streams: what is written here is read by the queue, as its session runs. May be used from any task; chunks of several
/// tasks that write at once go in any order. A writer that goes without ``finish()`` or ``fail(_:)`` fails the item.
public final class StreamWriter: Sendable {
    private let channel: ByteChannel

    init(_ channel: ByteChannel) {
        self.channel = channel
    }

    deinit {
        channel.end(.failure(TransferError(.sourceLost, .producerGone, "Its writer went without finishing it.")))
    }

    /// Hands a chunk over, in order. Returns when there was room for it, which may be long: until the session runs, and while it is paused.
    ///
    /// - Throws: A ``TransferError`` when nobody reads any more, as the item failed, or its session was cancelled or removed;
    ///   `CancellationError` when the task is cancelled, and then nothing of the chunk is sent.
    public func write(_ chunk: some DataProtocol) async throws {
        let data = chunk as? Data ?? Data(chunk)
        guard !data.isEmpty else { return }
        try await channel.write(data)
    }

    /// All is written. What comes after it is refused.
    public func finish() {
        channel.end(.success(()))
    }

    /// No more will come, and what came is not all: the item fails with this error in its words.
    public func fail(_ error: any Error) {
        channel.end(.failure(error))
    }
}
