import Locking

/// How far a source has come whose bytes arrive while it is sent, and word when it goes on.
///
/// The queue writes an app's stream to a file in its spool and tells here how far that file may be read; a transport reads the file, and asks
/// here what there is. Equal only to itself. Every method may be called from any thread, and none blocks.
///
/// The app's producer waits while it is so and so far ahead of what is confirmed. So a transport that gets a confirmation only at the end of a
/// request ends its request when there is nothing left to read, rather than wait for more in it. What was confirmed may be given back to the
/// disk, and reads as zeros then: a transport never reads before the position that it confirmed, or that its checkpoint vouches for.
public final class SourceGrowth: Sendable {
    /// What there is of a source.
    public enum Extent: Hashable, Sendable {
        /// So many bytes can be read, and more will come.
        case growing(Int64)
        /// All bytes can be read; their number is the size.
        case complete(Int64)
        /// No more will come, as the app's producer failed.
        case failed(TransferError)
    }

    private struct State {
        var extent: Extent
        var waiting: [(offset: Int64, call: @Sendable () -> Void)] = []
    }

    /// How many bytes there will be, if the app said so; what comes is checked against it.
    public let length: Int64?

    private let state: Locked<State>
    private let release: @Sendable (Int64) -> Void
    private let lift: @Sendable (Int64) -> Void

    /// Makes the growth of a source; called by the queue and by tests of transports.
    ///
    /// - Parameters:
    ///   - extent: What there is now.
    ///   - length: How many bytes there will be; nil if nobody knows.
    ///   - release: Called when the bytes before an offset are needed no more; must not block.
    ///   - lift: Called when the producer is to come to an offset without waiting for confirmations, `.max` for its end; must not block.
    public init(
        _ extent: Extent = .growing(0), length: Int64? = nil, release: @escaping @Sendable (Int64) -> Void = { _ in },
        lift: @escaping @Sendable (Int64) -> Void = { _ in }
    ) {
        state = Locked(State(extent: extent))
        self.length = length
        self.release = release
        self.lift = lift
    }

    /// What there is now.
    public var extent: Extent { state.withLock { $0.extent } }

    /// Calls back once, as soon as there is a byte at the offset, or the source is complete or failed: at once, on the caller's thread, if that
    /// is so already, and otherwise on the thread of the producer.
    ///
    /// - Parameter call: Must not block.
    public func whenReadable(at offset: Int64, call: @escaping @Sendable () -> Void) {
        let isReadable = state.withLock { state in
            let isReadable = Self.isReadable(state.extent, at: offset)
            if !isReadable { state.waiting.append((offset, call)) }
            return isReadable
        }
        if isReadable { call() }
    }

    /// Returns when there is a byte at the offset, or the source is complete or failed.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before.
    public func waitUntilReadable(at offset: Int64) async throws(CancellationError) {
        let (answers, continuation) = AsyncStream.makeStream(of: Void.self)
        whenReadable(at: offset) {
            continuation.yield()
            continuation.finish()
        }
        // The stream ends without an element when the task that waits is cancelled.
        for await _ in answers { return }
        throw CancellationError()
    }

    /// Returns when all bytes before an offset can be read, or the source is complete or failed, and lets the producer come so far without
    /// waiting for confirmations: for a transport whose server takes no less at once.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before.
    public func waitUntilReadable(upTo end: Int64) async throws(CancellationError) {
        lift(end)
        try await waitUntilReadable(at: end - 1)
    }

    /// Returns when the source is complete or failed, and lets the producer come to its end without waiting for confirmations: for a transport
    /// whose server must know the length before the first byte. All of the source is on the disk then.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before.
    public func waitUntilComplete() async throws(CancellationError) {
        lift(.max)
        try await waitUntilReadable(at: .max)
    }

    /// Tells that more can be read, or that no more will come. Called by the producer; what comes after an end is ignored.
    public func update(_ extent: Extent) {
        let due = state.withLock { state -> [@Sendable () -> Void] in
            guard case .growing = state.extent else { return [] }
            state.extent = extent
            let due = state.waiting.filter { Self.isReadable(extent, at: $0.offset) }
            state.waiting.removeAll { Self.isReadable(extent, at: $0.offset) }
            return due.map(\.call)
        }
        for call in due { call() }
    }

    /// Tells that the bytes before an offset are needed no more, as the other end confirmed them. Called by the transport.
    public func confirmed(before offset: Int64) {
        release(offset)
    }

    private static func isReadable(_ extent: Extent, at offset: Int64) -> Bool {
        if case .growing(let end) = extent { offset < end } else { true }
    }
}

extension SourceGrowth: Hashable {
    /// Whether both are the same object.
    public static func == (left: SourceGrowth, right: SourceGrowth) -> Bool { left === right }

    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
