public import Foundation
public import TransferCore

extension TransferItem {
    /// The default number of bytes that a stream may produce before the other end confirms them: 8 MiB.
    public static var defaultAhead: Int64 { 8 << 20 }

    /// Creates an item for a stream: bytes that the app produces during the transfer.
    ///
    /// A task of the queue iterates the sequence once, starting with the item's first attempt. The bytes pass through a file in the queue's
    /// storage folder, so that an upload can resume after a broken connection. The queue frees the disk space of confirmed bytes, if the
    /// file system supports this. While `ahead` bytes are unconfirmed, the queue requests no more bytes, unless the server requires the
    /// length first (<doc:Streams>). So a pause of the session also pauses the sequence.
    ///
    /// The item fails with the class `sourceLost` if the sequence throws, or if the server loses bytes whose disk space the queue has
    /// freed. It also fails if this process ends before all bytes are in the storage folder, unless
    /// ``TransferQueue/continueStream(_:bufferSize:ahead:)`` supplies the rest. An item of this kind can be enqueued only once.
    ///
    /// - Parameters:
    ///   - chunks: The bytes in order, as elements of any size: `Data`, arrays of bytes, or similar.
    ///   - destination: The remote name.
    ///   - length: The length in bytes, if it is known. The item fails if the sequence has another length.
    ///   - ahead: The maximum number of bytes on the disk that the other end has not confirmed, at least 1.
    public static func stream<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, as destination: some RemotePathConvertible, length: Int64? = nil, ahead: Int64 = defaultAhead
    ) -> TransferItem where Chunks.Element: DataProtocol {
        let producer = StreamProducer(length: length, ahead: ahead) { write in
            for try await chunk in chunks { try await write(chunk as? Data ?? Data(chunk)) }
        }
        return TransferItem(.stream(producer), as: destination)
    }

    /// Creates an item for a stream, and a writer for its bytes; otherwise the same as ``stream(_:as:length:ahead:)-(Chunks,_,_,_)``.
    ///
    /// - Parameters:
    ///   - destination: The remote name.
    ///   - length: The length in bytes, if it is known. The item fails if the written length differs.
    ///   - bufferSize: The size of the buffer in memory, in bytes, at least 1. A write waits while the buffer is full.
    ///   - ahead: The maximum number of bytes on the disk that the other end has not confirmed, at least 1.
    public static func stream(
        as destination: some RemotePathConvertible, length: Int64? = nil, bufferSize: Int = 1 << 20, ahead: Int64 = defaultAhead
    ) -> (item: TransferItem, writer: StreamWriter) {
        let channel = ByteChannel(capacity: bufferSize)
        let producer = StreamProducer(reading: channel, length: length, ahead: ahead)
        return (TransferItem(.stream(producer), as: destination), StreamWriter(channel))
    }

    /// Creates an item for the bytes of an input stream; otherwise the same as ``stream(_:as:length:ahead:)-(Chunks,_,_,_)``.
    ///
    /// The queue opens the stream, reads it on a separate thread, and closes it. The item fails if reading fails.
    ///
    /// - Parameters:
    ///   - stream: The stream, not opened yet.
    ///   - destination: The remote name.
    ///   - length: The length in bytes, if it is known. The item fails if the stream has another length.
    ///   - ahead: The maximum number of bytes on the disk that the other end has not confirmed, at least 1.
    public static func stream(
        _ stream: sending InputStream, as destination: some RemotePathConvertible, length: Int64? = nil, ahead: Int64 = defaultAhead
    ) -> TransferItem {
        let reader = InputStreamReader(stream)
        let producer = StreamProducer(length: length, ahead: ahead) { write in
            defer { reader.close() }
            while let data = try await reader.next() { try await write(data) }
        }
        return TransferItem(.stream(producer), as: destination)
    }
}
