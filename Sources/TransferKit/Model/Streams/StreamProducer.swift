import Foundation
import Locking
import TransferCore

/// A report of the queue about the bytes that the queue reads from a stream.
enum StreamReport: Sendable {
    /// The storage folder contains this number of additional bytes.
    case stored(Int)
    /// All bytes are in the storage folder, in a file that is marked as complete. The mark survives restarts of the process and of the machine.
    case sealed
    /// The queue no longer reads the stream.
    case refused(any Error)
}

/// The source of an app's stream. A producer provides the bytes in order, and can be read only once. Two producers are equal if they are
/// the same object.
package final class StreamProducer: Sendable {
    typealias Write = @Sendable (Data) async throws -> Void

    /// The length of the stream in bytes; nil if the app does not know it.
    let length: Int64?
    /// The maximum number of bytes on the disk that the other end has not confirmed.
    let ahead: Int64
    private let body: @Sendable (Write) async throws -> Void
    let report: @Sendable (StreamReport) -> Void
    private let isClaimed = Locked(false)

    init(
        length: Int64?, ahead: Int64, report: @escaping @Sendable (StreamReport) -> Void = { _ in },
        body: @escaping @Sendable (_ write: Write) async throws -> Void
    ) {
        self.length = length
        self.ahead = max(1, ahead)
        self.report = report
        self.body = body
    }

    /// Claims the stream, because it can be read only once. Returns false if another caller has claimed it.
    func claim() -> Bool {
        isClaimed.withLock { isClaimed in
            defer { isClaimed = true }
            return !isClaimed
        }
    }

    /// Gives up the claim, so that another caller can claim the stream. Call this method only if nothing was read from the stream.
    func unclaim() {
        isClaimed.withLock { $0 = false }
    }

    func produce(_ write: Write) async throws {
        try await body(write)
    }
}

extension StreamProducer {
    convenience init(reading channel: ByteChannel, length: Int64?, ahead: Int64) {
        self.init(length: length, ahead: ahead, report: channel.handle) { write in
            while let buffers = try await channel.read() {
                for data in buffers { try await write(data) }
            }
        }
    }
}

extension StreamProducer: Hashable {
    package static func == (left: StreamProducer, right: StreamProducer) -> Bool { left === right }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
