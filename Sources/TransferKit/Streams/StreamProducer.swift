import Foundation
import Locking
import TransferCore

/// What becomes of the chunks of a stream.
enum StreamNews: Sendable {
    /// So many more bytes are in the storage folder.
    case stored(Int)
    /// All of them are, and that these are all is known over restarts.
    case sealed
    /// Nobody reads any more.
    case refused(any Error)
}

/// What an app's stream is made of: something that hands over one chunk after the other, once. Equal only to itself.
package final class StreamProducer: Sendable {
    typealias Write = @Sendable (Data) async throws -> Void

    /// How many bytes there will be; nil if the app does not know.
    let length: Int64?
    /// How many bytes may be on the disk that the other end has not confirmed.
    let ahead: Int64
    private let body: @Sendable (Write) async throws -> Void
    let tell: @Sendable (StreamNews) -> Void
    private let isClaimed = Locked(false)

    /// - Parameters:
    ///   - tell: Told what becomes of the chunks.
    ///   - body: Hands the chunks over, in order; returns after the last.
    init(
        length: Int64?, ahead: Int64, tell: @escaping @Sendable (StreamNews) -> Void = { _ in },
        body: @escaping @Sendable (_ write: Write) async throws -> Void
    ) {
        self.length = length
        self.ahead = max(1, ahead)
        self.tell = tell
        self.body = body
    }

    /// - Returns: Whether nobody else has it: a stream can be read once.
    func claim() -> Bool {
        isClaimed.withLock { isClaimed in
            defer { isClaimed = true }
            return !isClaimed
        }
    }

    /// Nothing was read, and somebody else may.
    func unclaim() {
        isClaimed.withLock { $0 = false }
    }

    func produce(_ write: Write) async throws {
        try await body(write)
    }
}

extension StreamProducer {
    /// The chunks that a ``StreamWriter`` writes.
    convenience init(reading channel: ByteChannel, length: Int64?, ahead: Int64) {
        self.init(length: length, ahead: ahead, tell: channel.note) { write in
            while let chunks = try await channel.read() {
                for chunk in chunks { try await write(chunk) }
            }
        }
    }
}

extension StreamProducer: Hashable {
    package static func == (left: StreamProducer, right: StreamProducer) -> Bool { left === right }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
