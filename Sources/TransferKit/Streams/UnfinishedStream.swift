import Foundation
public import TransferCore

/// A stream that a process did not bring to its end, of a session that has yet to send it; see ``TransferQueue/unfinishedStreams``.
public struct UnfinishedStream: Hashable, Sendable {
    /// The session that sends it.
    public let session: SessionID
    /// The remote name of the item.
    public let destination: RemotePath
    /// How many bytes of it are kept or have arrived: the next byte that has to be written is the one at this offset, counted from 0.
    public let offset: Int64

    let name: Data
}

extension TransferQueue {
    /// The streams of earlier processes that somebody has to continue, in no order.
    ///
    /// After a queue was shut down or its process was killed, what was produced is in the storage folder. A stream that came to its end
    /// needs nobody and is not among these. One that did not fails its item when its session runs, unless it is continued before: so ask
    /// before ``start()``, and pass each one that the app can still produce to ``continueStream(_:bufferSize:ahead:)``.
    public nonisolated var unfinishedStreams: [UnfinishedStream] { streams.unfinished() }

    /// Gets a writer for the rest of a stream, from its ``UnfinishedStream/offset`` on.
    ///
    /// - Parameters:
    ///   - stream: One of the ``unfinishedStreams``.
    ///   - bufferSize: As for ``TransferItem/stream(as:length:bufferSize:ahead:)``.
    ///   - ahead: As for that.
    /// - Throws: ``QueueError`` with the code `invalidRequest` if nobody has to continue it: its session ended or ran, or it has a writer.
    public nonisolated func continueStream(
        _ stream: UnfinishedStream, bufferSize: Int = 1 << 20, ahead: Int64 = TransferItem.defaultAhead
    ) throws -> StreamWriter {
        let channel = ByteChannel(capacity: bufferSize)
        let producer = StreamProducer(reading: channel, length: nil, ahead: ahead)
        guard streams.find(stream.name)?.attach(producer) == true else {
            throw QueueError(.invalidRequest, "The stream for \(stream.destination) is not one that can be continued any more.")
        }
        _ = producer.claim()
        return StreamWriter(channel)
    }
}
