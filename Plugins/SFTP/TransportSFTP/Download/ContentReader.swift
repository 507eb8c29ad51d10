import Locking
import TransferCore
import TransportSupport

/// Reads a remote file with many requests in parallel, and requests the rest of partial responses again.
final class ContentReader: Sendable {
    /// A piece of the file, as it arrived.
    struct Piece: Sendable {
        var offset: Int64
        var bytes: [UInt8]
        /// Whether the piece completes its request.
        var isLast: Bool
    }

    /// The file ended before its size.
    struct EndedEarly: Error {}

    private struct State {
        var arrived: [Piece] = []
        var failure: (any Error)?
        /// The number of bytes that were requested.
        var asked: Int64 = 0
        var isAllAsked = false
        /// Whether no more pieces are taken.
        var isOver = false
    }

    private let client: SFTPClient
    private let handle: Handle
    private let pieceSize: Int
    private let reporter: AttemptReporter
    private let threads: WorkerThreads
    private let state = Locked(State())
    /// Requested bytes that are not taken yet, which limits the memory for a slow disk. Grows as content arrives, because bytes in flight
    /// are lost when the connection breaks.
    private let untaken: RequestWindow
    private let arrivals: AsyncStream<Void>
    private let arrival: AsyncStream<Void>.Continuation

    private static let firstRequests = 16
    /// More than can be in flight over one connection, so that a disk can be slow for a moment.
    private static let growth = (bytes: 6 << 20, requests: 192)

    init(
        _ handle: Handle, at client: SFTPClient, _ features: SFTPFeatures, on threads: WorkerThreads, reporting reporter: AttemptReporter
    ) {
        self.client = client
        self.handle = handle
        self.threads = threads
        self.reporter = reporter
        pieceSize = features.readSize
        untaken = RequestWindow(bytes: Self.firstRequests * pieceSize, requests: Self.firstRequests, growth: Self.growth)
        (arrivals, arrival) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Reads a part of the file.
    ///
    /// - Parameter take: Called with pieces in the order of their arrival, one call at a time, on a thread that can block.
    /// - Throws: A ``StatusFailure``; ``EndedEarly``; the error of `take`; `CancellationError`.
    func read(_ range: Range<Int64>, take: @escaping @Sendable ([Piece]) throws -> Void) async throws {
        let blocks = ContentBlocks(range)
        try await read(next: blocks.next, take: take)
    }

    /// Reads one range after the other, as ``read(_:take:)`` does, without a pause between them.
    ///
    /// - Parameter next: Returns the next range; nil at the end. Does not block.
    func read(next: @escaping @Sendable () -> Range<Int64>?, take: @escaping @Sendable ([Piece]) throws -> Void) async throws {
        defer { end() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                do {
                    while let range = next() { try await self.ask(for: range) }
                    self.state.withLock { $0.isAllAsked = true }
                } catch let error as TransferError {
                    // Earlier pieces are taken first.
                    self.state.withLock { $0.failure = $0.failure ?? error }
                }
                self.arrival.yield()
            }
            group.addTask { try await self.takeArrivals(take) }
            // Not waitForAll(), which lets the others continue after an error.
            while try await group.next() != nil {}
        }
    }

    private func ask(for range: Range<Int64>) async throws {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let limit = min(Int64(pieceSize), range.upperBound - offset)
            let count = try await reporter.awaitAllowance(upTo: limit)
            try await untaken.acquire(bytes: Int(count))
            try await client.downloads.acquire(bytes: Int(count))
            state.withLock { $0.asked += count }
            ask(for: Int(count), at: offset)
            offset += count
        }
    }

    private func ask(for count: Int, at offset: Int64) {
        client.submit(.read(handle, offset: UInt64(offset), count: UInt32(count))) { [self] result in
            switch result {
            case .success(.data(let bytes)) where !bytes.isEmpty && bytes.count <= count:
                let piece = Piece(offset: offset, bytes: bytes, isLast: bytes.count == count)
                let isWanted = note(piece)
                // Not when the piece is taken: a hanging disk must not keep others from the connection.
                client.downloads.release(bytes: isWanted ? bytes.count : count, requests: isWanted && !piece.isLast ? 0 : 1)
                guard isWanted else { return }
                // A server can send less than was requested (draft-ietf-secsh-filexfer-02, section 6.4).
                if !piece.isLast { ask(for: count - bytes.count, at: offset + Int64(bytes.count)) }
            case .success(.status(let status)) where status.code != .ok:
                fail(status.code == .endOfFile ? EndedEarly() : StatusFailure(status), count)
            case .success: fail(client.unexpected, count)
            case .failure(let error): fail(error, count)
            }
            arrival.yield()
        }
    }

    /// - Returns: Whether the piece is still wanted.
    private func note(_ piece: Piece) -> Bool {
        state.withLock { state in
            if !state.isOver { state.arrived.append(piece) }
            return !state.isOver
        }
    }

    private func fail(_ error: any Error, _ count: Int) {
        client.downloads.release(bytes: count)
        state.withLock { $0.failure = $0.failure ?? error }
    }

    private func takeArrivals(_ take: @escaping @Sendable ([Piece]) throws -> Void) async throws {
        var taken: Int64 = 0
        for await _ in arrivals {
            let (pieces, failure, total) = state.withLock { state in
                defer { state.arrived = [] }
                return (state.arrived, state.failure, state.isAllAsked ? state.asked : nil)
            }
            // Pieces from before a failure are worth keeping.
            if !pieces.isEmpty { try await threads.run { try take(pieces) } }
            if let failure { throw failure }
            taken += pieces.reduce(0) { $0 + Int64($1.bytes.count) }
            if taken == total { return }
            untaken.release(bytes: pieces.reduce(0) { $0 + $1.bytes.count }, requests: pieces.count { $0.isLast })
        }
        throw CancellationError()
    }

    /// Ends the taking of pieces.
    private func end() {
        state.withLock { state in
            state.isOver = true
            state.arrived = []
        }
    }
}
