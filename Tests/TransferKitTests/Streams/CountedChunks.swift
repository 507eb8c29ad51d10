import Foundation
import Locking
import TransferCore
import TransportTesting

/// A sequence of chunks of bytes that counts the requested chunks.
struct CountedChunks: AsyncSequence, Sendable {
    typealias Element = Data

    let content: Data
    let size: Int
    /// The error that the sequence throws after the last chunk; nil to end normally.
    var failure: TransferError?
    let requestCount = Locked(0)
    private let expectation: (count: Int, latch: Latch)?

    /// - Parameter latch: A latch that opens when `count` chunks have been requested.
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
            let requestCount = chunks.requestCount.withLock { requestCount in
                requestCount += 1
                return requestCount
            }
            if let (count, latch) = chunks.expectation, requestCount == count { latch.open() }
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
