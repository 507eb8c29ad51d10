public import Foundation
public import TransferCore

extension TransferItem {
    /// How far a stream may be ahead of what the other end confirmed, unless the app says otherwise: 8 MiB.
    public static var defaultAhead: Int64 { 8 << 20 }

    /// Makes an item of bytes that are produced while they are sent.
    ///
    /// The sequence is iterated once, by a task of the queue's, from when its session first runs. Its bytes go through a file in the queue's
    /// storage folder, so that a connection can break and go on; what the other end confirmed is given back to the disk where the file system
    /// can do that. While it is `ahead` bytes ahead, the sequence is not asked for more: also while the session is paused.
    ///
    /// A sequence that throws fails the item with the class `sourceLost`. So does the end of this process, as nobody else has the rest of the
    /// bytes; and a server that lost what was given back. An item of this kind can be enqueued once.
    ///
    /// - Parameters:
    ///   - chunks: Chunks of any size, in order: `Data`, arrays of bytes, or the like.
    ///   - destination: The remote name.
    ///   - length: How many bytes there will be, if that is known; more or fewer fail the item.
    ///   - ahead: How many bytes may be on the disk that the other end has not confirmed; at least 1.
    public static func stream<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, as destination: RemotePath, length: Int64? = nil, ahead: Int64 = defaultAhead
    ) -> TransferItem where Chunks.Element: DataProtocol {
        let producer = StreamProducer(length: length, ahead: ahead) { write in
            for try await chunk in chunks { try await write(chunk as? Data ?? Data(chunk)) }
        }
        return TransferItem(.stream(producer), as: destination)
    }

    /// Makes an item, and a writer that hands its bytes over while they are sent; as ``stream(_:as:length:ahead:)``.
    ///
    /// - Parameters:
    ///   - destination: The remote name.
    ///   - length: How many bytes there will be, if that is known; more or fewer fail the item.
    ///   - bufferSize: How many bytes in memory a write does not wait for.
    ///   - ahead: How many bytes may be on the disk that the other end has not confirmed; at least 1.
    public static func stream(
        as destination: RemotePath, length: Int64? = nil, bufferSize: Int = 1 << 20, ahead: Int64 = defaultAhead
    ) -> (item: TransferItem, writer: StreamWriter) {
        let channel = ByteChannel(capacity: bufferSize)
        let producer = StreamProducer(length: length, ahead: ahead, refusal: channel.refuse) { write in
            while let chunks = try await channel.read() {
                for chunk in chunks { try await write(chunk) }
            }
        }
        return (TransferItem(.stream(producer), as: destination), StreamWriter(channel))
    }
}
