public import Foundation
import TransferCore

/// Writes the bytes of a stream item. Created by ``TransferItem/stream(as:length:bufferSize:ahead:)`` or
/// ``TransferQueue/continueStream(_:bufferSize:ahead:)``.
///
/// The queue reads the written bytes while the item's session runs, as from a pipe. Any task may use the writer. If several tasks
/// write concurrently, the order of their calls is arbitrary. If the writer is released without ``finish()`` or ``fail(_:)``, the item fails.
public final class StreamWriter: Sendable {
    private let channel: ByteChannel

    init(_ channel: ByteChannel) {
        self.channel = channel
    }

    deinit {
        channel.end(.failure(TransferError(.sourceLost, .producerGone, "its writer was released before finish() was called.")))
    }

    /// Appends data. Waits until the buffer has room, which can take until the session runs or is resumed.
    ///
    /// - Throws: A ``/TransferCore/TransferError`` if the stream has ended, or if the queue no longer reads the stream, for example because
    ///   the session was cancelled; `CancellationError` if the task is cancelled while the call waits. After an error, no byte of the data
    ///   is sent.
    public func write(_ bytes: some DataProtocol) async throws {
        let data = bytes as? Data ?? Data(bytes)
        guard !data.isEmpty else { return }
        try await channel.write(data)
    }

    /// Appends as many bytes of the data as the buffer has room for, without waiting. For producers that must not wait, such as a timer.
    ///
    /// ```swift
    /// timer.setEventHandler {
    ///     pending.append(sensor.read())
    ///     do {
    ///         pending.removeFirst(try writer.tryWrite(pending))
    ///     } catch {
    ///         timer.cancel()  // The queue no longer reads the stream.
    ///     }
    /// }
    /// ```
    ///
    /// - Returns: The number of appended bytes, from the start of the data; 0 if the buffer is full.
    /// - Throws: A ``/TransferCore/TransferError`` if the queue no longer reads the stream, or the stream has ended.
    public func tryWrite(_ bytes: some DataProtocol) throws -> Int {
        try channel.tryWrite(bytes)
    }

    /// Whether ``tryWrite(_:)`` would now append bytes, or throw an error. If false, the buffer is full, and the call would return 0.
    public var canWrite: Bool { channel.hasRoom }

    /// Waits until the buffer has room for at least one byte. Another task that writes can use up this room.
    ///
    /// - Throws: The errors of ``write(_:)``.
    public func whenWritable() async throws {
        try await channel.waitForRoom()
    }

    /// Waits until all bytes written so far are in the queue's storage folder, where they survive the end of this process. After ``finish()``,
    /// the call also waits until the end of the stream is stored. From then on, the item needs no writer.
    ///
    /// The call also waits while the session does not run, and while too many bytes are unconfirmed.
    ///
    /// - Throws: The errors of ``write(_:)``, and the error that was passed to ``fail(_:)``.
    public func flush() async throws {
        try await channel.flush()
    }

    /// Ends the stream after the bytes written so far. Later writes throw.
    public func finish() {
        channel.end(.success(()))
    }

    /// Ends the stream as incomplete. The item fails, and its error message contains the description of the given error. No effect after
    /// ``finish()``.
    public func fail(_ error: any Error) {
        channel.end(.failure(error))
    }
}
