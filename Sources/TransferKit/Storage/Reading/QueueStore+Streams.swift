import Foundation
import GRDB
import SystemPackage
import TransferCore

/// A stream that an earlier process did not finish.
struct StoredStream: Sendable {
    var session: SessionID
    /// The name of the stream's file in the ``Spool``.
    var name: Data
    var destination: RemotePath
    /// The length of the stream in bytes; nil if it is unknown.
    var length: Int64?
    /// The number of bytes that a checkpoint covers. The file may no longer contain all of them, because the queue frees their disk space.
    var confirmed: Int64
    /// The size of the stream's file in the ``Spool``; nil if there is no file.
    var size: Int64?
    /// Whether the file contains all bytes of the stream.
    var isComplete: Bool

    /// The offset from which the app must continue; for a complete stream, its length.
    var offset: Int64 {
        // After a power loss, unsynced bytes can be missing. The size of an incomplete file is therefore valid only if the machine has not
        // restarted since the file was created.
        let isFromThisBoot = Spool.wasCreatedSinceBoot(name)
        return isComplete || isFromThisBoot ? max(size ?? 0, confirmed) : confirmed
    }
}

extension QueueStore {
    /// Returns the streams of pending items, with their state. Omits the streams of cancelled sessions.
    func pendingStreams() async throws -> [StoredStream] {
        let streams = try await read { db in
            try StoredRow.fetchAll(
                db,
                sql: """
                    SELECT schedule.id, file.source, file.destination, file.size, file.unsized,
                        (SELECT max(confirmed) FROM checkpoint
                            WHERE checkpoint.session = file.session AND checkpoint.position = file.position
                            AND checkpoint.generation = file.generation)
                    FROM file JOIN schedule ON schedule.session = file.session
                    WHERE \(Spool.isNeededStream)
                    UNION ALL SELECT schedule.id, item.source, item.destination, item.size, item.unsized, NULL
                    FROM item JOIN schedule ON schedule.session = item.session
                    WHERE item.kind = 'stream' AND schedule.state <> 'cancelled'
                    """
            ).compactMap { row -> StoredStream? in
                guard let id = SessionID(data: try row.decode(atIndex: 0)),
                    let destination = try? RemotePath(bytes: try row.decode(Data.self, atIndex: 2))
                else { return nil }
                return StoredStream(
                    session: id, name: try row.decode(atIndex: 1), destination: destination,
                    length: try row.decode(Bool.self, atIndex: 4) ? nil : try Self.bytes(row, atIndex: 3),
                    confirmed: try Self.bytes(row, atIndex: 5), size: nil, isComplete: false)
            }
        }
        guard !streams.isEmpty else { return [] }
        return await BlockingIO.run(.storage) { [spool] in
            streams.map { stream in
                var stream = stream
                (stream.size, stream.isComplete) = spool.sizeOfStream(stream.name)
                return stream
            }
        }
    }
}
