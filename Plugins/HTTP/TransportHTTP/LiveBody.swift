import CurlEngine
import Locking
import SystemPackage
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The body of a request that sends a stream while the app still writes to it.
///
/// Reads the source's file as it grows, at most as fast as the connection accepts the bytes. Each time the request is sent again, for
/// example after a redirect, the body restarts from byte 0. This is no longer possible after ``release()`` has released the first bytes.
final class LiveBody: Sendable {
    private struct State {
        var reading: Task<Void, Never>?
        /// The number of bytes of the current request that the connection accepted.
        var accepted: Int64 = 0
        /// The offset before which the queue may free the bytes, because they are no longer needed.
        var released: Int64 = 0
        /// Whether no bytes may be released until the next ``start()``, because the body may restart.
        var isReserved = false
    }

    /// The number of bytes to read from the file in one call.
    private static let readSize = 256 * 1024
    /// The minimum number of bytes that the connection accepts between two releases. Until the first release, a failed request can be repeated.
    private static let releaseInterval: Int64 = 4 << 20

    private let file: FileReader
    private let growth: SourceGrowth
    private let threads: WorkerThreads
    private let state = Locked(State())

    init(_ file: FileReader, _ growth: SourceGrowth, on threads: WorkerThreads) {
        self.file = file
        self.growth = growth
        self.threads = threads
    }

    /// The number of released bytes, which can't be sent again.
    var released: Int64 { state.withLock { $0.released } }

    /// Starts the body of the next request, and ends the body of the previous request.
    func start() -> HTTPBody {
        let stream = HTTPBodyStream(capacity: Self.readSize)
        // Checked under the same lock as the reset of `accepted`. Otherwise, `release()` could release bytes of the previous request after
        // the check.
        let canStart = state.withLock { state in
            state.accepted = 0
            state.isReserved = false
            return state.released == 0
        }
        let reading = Task { await copy(to: stream, canStart: canStart) }
        let previous = state.withLock { state in
            defer { state.reading = reading }
            return state.reading
        }
        previous?.cancel()
        return .stream(stream, length: growth.length)
    }

    /// Ensures that the body can restart: releases no bytes until the next ``start()``.
    ///
    /// - Returns: False if the first bytes are already released.
    func reserveRestart() -> Bool {
        state.withLock { state in
            state.isReserved = state.released == 0
            return state.isReserved
        }
    }

    /// Stops reading. Call this method when the last request has ended.
    func end() {
        state.withLock { $0.reading }?.cancel()
    }

    /// Updates the number of bytes of the current request that the connection accepted, so that the app's producer can write more. Does not
    /// block.
    func accept(_ count: Int64) {
        state.withLock { $0.accepted = count }
        growth.confirmed(before: count)
    }

    /// Releases the bytes that the connection accepted, if at least ``releaseInterval`` of them are not released yet. After a release, the
    /// body can't restart.
    ///
    /// - Returns: The number of released bytes; nil if this call released none.
    func release() -> Int64? {
        state.withLock { state in
            guard !state.isReserved, state.accepted - state.released >= Self.releaseInterval else { return nil }
            state.released = state.accepted
            return state.released
        }
    }

    /// Passes the source's bytes to a stream until the source is complete, and then ends the stream. After an error, fails the stream with the
    /// error.
    private func copy(to stream: HTTPBodyStream, canStart: Bool) async {
        do {
            guard canStart else { throw lost("The server requested the stream from its first byte again.") }
            var offset: Int64 = 0
            while let end = try await end(after: offset) {
                let bytes = try await read(offset..<min(end, offset + Int64(Self.readSize)))
                try await stream.write(bytes)
                offset += Int64(bytes.count)
            }
            stream.finish()
        } catch {
            stream.fail(error)
        }
    }

    /// Waits for bytes after an offset, and returns the end of the readable bytes; nil if the source has no more bytes.
    private func end(after offset: Int64) async throws -> Int64? {
        try await growth.waitUntilReadable(at: offset)
        switch growth.extent {
        case .growing(let end): return end
        case .complete(let size): return offset < size ? size : nil
        case .failed(let error): throw error
        }
    }

    private func read(_ range: Range<Int64>) async throws -> [UInt8] {
        try await threads.runUnlessCancelled { [file] in
            let bytes = unsafe try [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
                count = try unsafe file.descriptor.read(
                    fromAbsoluteOffset: range.lowerBound, into: UnsafeMutableRawBufferPointer(buffer))
            }
            guard !bytes.isEmpty else { throw TransferError.sourceUnavailable(file.source.path, errno: EIO) }
            return bytes
        }
    }

    /// The error for a stream that failed after its first bytes were released.
    func lost(_ reason: String, cause: String? = nil) -> TransferError {
        TransferError(
            .sourceLost, .producerGone,
            "\(reason) A stream can't resume over plain HTTP, and its first \(released) bytes are no longer stored. Enqueue it again.",
            cause: cause)
    }

    /// The error for a stream whose request failed after its first bytes were released. A permanent error stays unchanged.
    func lost(after error: TransferError) -> TransferError {
        error.failureClass == .permanent ? error : lost(error.message, cause: error.cause)
    }
}
