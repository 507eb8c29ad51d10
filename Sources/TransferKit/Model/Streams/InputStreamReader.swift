import Dispatch
import Foundation
import Locking

/// Reads an input stream on a separate dispatch queue, because a read can block for as long as the stream has no bytes.
final class InputStreamReader: @unchecked Sendable {  // Only the blocks of `queue`, which run one at a time, use the stream.
    private static let bufferSize = 256 * 1024

    private let stream: InputStream
    private let queue = DispatchQueue(label: "TransferKit.InputStream")

    init(_ stream: sending InputStream) {
        self.stream = stream
    }

    /// Returns the next bytes, at least one; nil at the end of the stream. If the task is cancelled, does not wait for a read that blocks.
    ///
    /// - Throws: The error of the stream; `CancellationError` if the task is cancelled.
    func next() async throws -> Data? {
        let waiting = Locked<CheckedContinuation<Data?, any Error>?>(nil)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                waiting.withLock { $0 = continuation }
                queue.async {
                    let result = Result { try self.read() }
                    waiting.withLock { $0.take() }?.resume(with: result)
                }
                if Task.isCancelled { waiting.withLock { $0.take() }?.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            waiting.withLock { $0.take() }?.resume(throwing: CancellationError())
        }
    }

    func close() {
        queue.async { self.stream.close() }
    }

    private func read() throws -> Data? {
        if stream.streamStatus == .notOpen { stream.open() }
        var data = Data(count: Self.bufferSize)
        let count = unsafe data.withUnsafeMutableBytes { buffer in
            unsafe buffer.assumingMemoryBound(to: UInt8.self).baseAddress.map { unsafe stream.read($0, maxLength: buffer.count) } ?? -1
        }
        guard count >= 0 else { throw stream.streamError ?? CocoaError(.fileReadUnknown) }
        return count == 0 ? nil : data.prefix(count)
    }
}
