import Foundation
import Locking
import TransferCore
import TransportTesting

/// Produces as many chunks of bytes as requested, and counts the requests.
struct CountedChunks: AsyncSequence, Sendable {
    typealias Element = Data

    let content: Data
    let size: Int
    /// Thrown after the last chunk instead of the end.
    var failure: TransferError?
    let asked = Locked(0)
    private let expectation: (count: Int, latch: Latch)?

    /// - Parameter latch: Opened when this many chunks were requested.
    init(_ content: Data, size: Int, failure: TransferError? = nil, opening latch: Latch? = nil, at count: Int = 0) {
        self.content = content
        self.size = size
        self.failure = failure
        expectation = latch.map { (count, $0) }
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        let chunks: CountedChunks
        var offset = 0

        mutating func next() async throws -> Data? {
            let asked = chunks.asked.withLock { asked in
                asked += 1
                return asked
            }
            if let (count, latch) = chunks.expectation, asked == count { latch.open() }
            guard offset < chunks.content.count else {
                if let failure = chunks.failure { throw failure }
                return nil
            }
            defer { offset += chunks.size }
            return chunks.content.dropFirst(offset).prefix(chunks.size)
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(chunks: self) }
}
