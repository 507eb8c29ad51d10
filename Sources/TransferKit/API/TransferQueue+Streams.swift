import Foundation
import TransferCore

extension TransferQueue {
    /// The unfinished streams of earlier processes, in no particular order. The app should continue them.
    ///
    /// The bytes in the storage folder survive a shutdown or a crash. After a restart of the machine, an unfinished stream continues after its
    /// confirmed bytes. A finished stream needs no producer and is not in this list. If the app does not continue an unfinished stream, the stream's
    /// item fails when the session runs. So read this list before ``start()``, and pass each stream that the app can still produce to
    /// ``continueStream(_:bufferSize:ahead:)``.
    public nonisolated var unfinishedStreams: [UnfinishedStream] { streams.unfinished() }

    /// Returns a writer for the rest of a stream, from its ``UnfinishedStream/offset``.
    ///
    /// - Parameters:
    ///   - stream: One of the ``unfinishedStreams``.
    ///   - bufferSize: See ``TransferItem/stream(as:length:bufferSize:ahead:)``.
    ///   - ahead: See ``TransferItem/stream(as:length:bufferSize:ahead:)``.
    /// - Throws: ``QueueError`` with the code `invalidRequest` if the stream can't be continued. Either its item has ended, for example because the
    ///   session has already run, or another writer is attached.
    public nonisolated func continueStream(
        _ stream: UnfinishedStream, bufferSize: Int = 1 << 20, ahead: Int64 = TransferItem.defaultAhead
    ) throws -> StreamWriter {
        let channel = ByteChannel(capacity: bufferSize)
        let producer = StreamProducer(reading: channel, length: nil, ahead: ahead)
        guard streams.find(stream.name)?.attach(producer) == true else {
            throw QueueError(
                .invalidRequest,
                "The stream for \(stream.destination) can't be continued: its item has ended, or another writer is attached.")
        }
        _ = producer.claim()
        return StreamWriter(channel)
    }
}
