import Locking

/// The state of a growing source: an upload source whose bytes arrive during the upload.
///
/// The queue writes an app's stream to a file in its storage folder, and records here how many bytes of that file are readable. A transport
/// reads the file and this state. All methods can be called from any thread, and none blocks.
///
/// The app's producer waits while it is too far ahead of the confirmed bytes. If the server confirms bytes only at the end of a request,
/// end the request when no more bytes are readable. Otherwise the transport and the producer would wait for each other. The queue may free
/// the disk blocks of confirmed bytes, which then read as zeros. Never read bytes before the confirmed position, or before the position
/// that the checkpoint covers.
public final class SourceGrowth: Sendable {
    /// The readable bytes of a source.
    public enum Extent: Hashable, Sendable {
        /// The number of readable bytes. More bytes will follow.
        case growing(Int64)
        /// All bytes are readable. Their number is the size.
        case complete(Int64)
        /// The app's producer failed, so no more bytes will follow.
        case failed(TransferError)
    }

    private struct State {
        var extent: Extent
        var waiting: [Call] = []
        var nextCall: UInt64 = 0
    }

    /// A function to call when the byte at the offset is readable.
    private struct Call {
        let number: UInt64
        let offset: Int64
        let function: @Sendable () -> Void
    }

    /// The expected size in bytes; nil if the app set no size. The queue compares the stream's size with the expected size.
    ///
    /// With an expected size, the last byte is readable only when the source is complete. Otherwise, a server that knows the size could
    /// consider the file complete before the producer reports a failure.
    public let length: Int64?

    private let state: Locked<State>
    private let release: @Sendable (Int64) -> Void
    private let lift: @Sendable (Int64) -> Void

    /// Creates the state of a source. For the queue and tests of transports.
    ///
    /// - Parameters:
    ///   - extent: The readable bytes.
    ///   - length: The expected size in bytes, or nil if unknown.
    ///   - release: Called when the bytes before an offset are no longer needed. Must not block.
    ///   - lift: Called with an offset up to which the producer may write without waiting for confirmations; `.max` for the whole source.
    ///     Must not block.
    public init(
        _ extent: Extent = .growing(0), length: Int64? = nil, release: @escaping @Sendable (Int64) -> Void = { _ in },
        lift: @escaping @Sendable (Int64) -> Void = { _ in }
    ) {
        state = Locked(State(extent: Self.withoutLastByte(extent, of: length)))
        self.length = length
        self.release = release
        self.lift = lift
    }

    /// The readable bytes.
    public var extent: Extent { state.withLock { $0.extent } }

    /// Calls `call` once when the byte at the offset is readable, or the source is complete or failed.
    ///
    /// If one of these conditions already holds, `call` runs on the caller's thread before this method returns. Otherwise it runs during the
    /// call of ``update(_:)`` that fulfils a condition, on the thread of that call.
    ///
    /// - Parameters:
    ///   - offset: The offset of a byte in the stream, from 0.
    ///   - call: Must not block.
    public func whenReadable(at offset: Int64, call: @escaping @Sendable () -> Void) {
        _ = addCall(at: offset, call)
    }

    /// Calls the function now or later, like `whenReadable(at:call:)`.
    ///
    /// - Returns: A number that identifies the pending call; nil if the function was already called.
    private func addCall(at offset: Int64, _ function: @escaping @Sendable () -> Void) -> UInt64? {
        let number: UInt64? = state.withLock { state in
            guard !Self.isReadable(state.extent, at: offset) else { return nil }
            state.nextCall &+= 1
            state.waiting.append(Call(number: state.nextCall, offset: offset, function: function))
            return state.nextCall
        }
        if number == nil { function() }
        return number
    }

    /// The number of pending calls. Only tests read it.
    package var waitingCalls: Int { state.withLock { $0.waiting.count } }

    /// Waits until the byte at the offset is readable, or the source is complete or failed.
    ///
    /// - Throws: `CancellationError` if the task is cancelled first.
    public func waitUntilReadable(at offset: Int64) async throws(CancellationError) {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self)
        let number = addCall(at: offset) {
            continuation.yield()
            continuation.finish()
        }
        // `signals` ends without an element if the waiting task is cancelled.
        for await _ in signals { return }
        state.withLock { $0.waiting.removeAll { $0.number == number } }
        throw CancellationError()
    }

    /// Waits until all bytes before an offset are readable, or the source is complete or failed. The producer can write up to this offset without
    /// waiting for confirmations.
    ///
    /// Intended for a transport whose server requires a minimum number of bytes in one request.
    ///
    /// - Throws: `CancellationError` if the task is cancelled first.
    public func waitUntilReadable(upTo end: Int64) async throws(CancellationError) {
        lift(end)
        try await waitUntilReadable(at: end - 1)
    }

    /// Waits until the source is complete or failed. The producer does not wait for confirmations, so the whole source is on disk afterwards.
    ///
    /// Intended for a transport whose server needs the length before the first byte.
    ///
    /// - Throws: `CancellationError` if the task is cancelled first.
    public func waitUntilComplete() async throws(CancellationError) {
        lift(.max)
        try await waitUntilReadable(at: .max)
    }

    /// Reports new readable bytes, the end or a failure. The queue calls this method when it has stored bytes of the app's stream, when the
    /// stream has ended or failed, and when the queue ends the stream. Calls after the end or a failure have no effect.
    public func update(_ extent: Extent) {
        let due = state.withLock { state -> [@Sendable () -> Void] in
            guard case .growing = state.extent else { return [] }
            let extent = Self.withoutLastByte(extent, of: length)
            state.extent = extent
            let due = state.waiting.filter { Self.isReadable(extent, at: $0.offset) }
            state.waiting.removeAll { Self.isReadable(extent, at: $0.offset) }
            return due.map(\.function)
        }
        for call in due { call() }
    }

    private static func withoutLastByte(_ extent: Extent, of length: Int64?) -> Extent {
        guard case .growing(let end) = extent, let length else { return extent }
        return .growing(min(end, max(0, length - 1)))
    }

    /// Reports that the other end confirmed the bytes before an offset, so they are no longer needed. Called by the transport.
    public func confirmed(before offset: Int64) {
        release(offset)
    }

    private static func isReadable(_ extent: Extent, at offset: Int64) -> Bool {
        if case .growing(let end) = extent { offset < end } else { true }
    }
}

extension SourceGrowth: Hashable {
    /// Returns whether both values are the same object.
    public static func == (left: SourceGrowth, right: SourceGrowth) -> Bool { left === right }

    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
