import Locking
import TransferCore
import TransportSupport

/// Reads a remote file with many concurrent requests.
final class ContentReader: Sendable {
    /// The content of one response (`SSH_FXP_DATA`).
    struct DataPacket: Sendable {
        var offset: Int64
        var bytes: [UInt8]
        /// Whether the bytes reach the end of the request. If not, the reader requests the missing bytes.
        var isLast: Bool
    }

    /// The error for a file that ended before its expected size.
    struct EndedEarly: Error {}

    private struct State {
        var arrived: [DataPacket] = []
        var failure: (any Error)?
        var requested: Int64 = 0
        var isAllRequested = false
        /// Whether the read has ended. If so, further packets are dropped.
        var isOver = false
    }

    private let client: SFTPClient
    private let handle: Handle
    private let requestSize: Int
    private let reporter: AttemptReporter
    private let threads: WorkerThreads
    private let state = Locked(State())
    /// Limits the requested bytes that have not been processed, so that a slow disk does not fill the memory. Starts small and grows as
    /// content arrives, because a broken connection loses the bytes in flight.
    private let unprocessed: RequestWindow
    private let arrivals: AsyncStream<Void>
    private let arrival: AsyncStream<Void>.Continuation

    private static let firstRequests = 16
    /// More than the window of ``SFTPClient/downloads``, so that requests continue while the disk is slow for a moment.
    private static let growth = (bytes: 6 << 20, requests: 192)

    init(
        _ handle: Handle, at client: SFTPClient, _ features: SFTPFeatures, on threads: WorkerThreads, reporting reporter: AttemptReporter
    ) {
        self.client = client
        self.handle = handle
        self.threads = threads
        self.reporter = reporter
        requestSize = features.readSize
        unprocessed = RequestWindow(bytes: Self.firstRequests * requestSize, requests: Self.firstRequests, growth: Self.growth)
        (arrivals, arrival) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Reads a range of the file.
    ///
    /// - Parameter process: Processes packets in the order of their arrival, one call at a time. May block.
    /// - Throws: A ``StatusFailure``, ``EndedEarly``, a `TransferError`, the error of `process`, or `CancellationError`.
    func read(_ range: Range<Int64>, process: @escaping @Sendable ([DataPacket]) throws -> Void) async throws {
        let blocks = ContentBlocks(range)
        try await read(next: blocks.next, process: process)
    }

    /// Reads several ranges one after the other, without a pause between them. Otherwise like ``read(_:process:)``.
    ///
    /// - Parameter next: Returns the next range; nil at the end. Must not block.
    func read(next: @escaping @Sendable () -> Range<Int64>?, process: @escaping @Sendable ([DataPacket]) throws -> Void) async throws {
        defer { end() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                do {
                    while let range = next() { try await self.requestBytes(for: range) }
                    self.state.withLock { $0.isAllRequested = true }
                } catch let error as TransferError {
                    // `processArrivals(_:)` throws this error after it has processed the earlier packets.
                    self.state.withLock { $0.failure = $0.failure ?? error }
                }
                self.arrival.yield()
            }
            group.addTask { try await self.processArrivals(process) }
            // waitForAll() would let the other task continue after an error.
            while try await group.next() != nil {}
        }
    }

    private func requestBytes(for range: Range<Int64>) async throws {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let limit = min(Int64(requestSize), range.upperBound - offset)
            let count = try await reporter.awaitAllowance(upTo: limit)
            try await unprocessed.acquire(bytes: Int(count))
            try await client.downloads.acquire(bytes: Int(count))
            state.withLock { $0.requested += count }
            requestBytes(for: Int(count), at: offset)
            offset += count
        }
    }

    private func requestBytes(for count: Int, at offset: Int64) {
        client.submit(.read(handle, offset: UInt64(offset), count: UInt32(count))) { [self] result in
            switch result {
            case .success(.data(let bytes)) where !bytes.isEmpty && bytes.count <= count:
                let packet = DataPacket(offset: offset, bytes: bytes, isLast: bytes.count == count)
                let isWanted = enqueue(packet)
                // Releases the bytes before the packet is processed, so that a hanging disk does not block the other files of the connection.
                client.downloads.release(bytes: isWanted ? bytes.count : count, requests: isWanted && !packet.isLast ? 0 : 1)
                guard isWanted else { return }
                // A server may send less than was requested (draft-ietf-secsh-filexfer-02, section 6.4).
                if !packet.isLast { requestBytes(for: count - bytes.count, at: offset + Int64(bytes.count)) }
            case .success(.status(let status)) where status.code != .ok:
                fail(status.code == .endOfFile ? EndedEarly() : StatusFailure(status), count)
            case .success: fail(client.unexpectedResponseError, count)
            case .failure(let error): fail(error, count)
            }
            arrival.yield()
        }
    }

    /// Returns whether the packet will be processed; false after the end of the read.
    private func enqueue(_ packet: DataPacket) -> Bool {
        state.withLock { state in
            if !state.isOver { state.arrived.append(packet) }
            return !state.isOver
        }
    }

    private func fail(_ error: any Error, _ count: Int) {
        client.downloads.release(bytes: count)
        state.withLock { $0.failure = $0.failure ?? error }
    }

    private func processArrivals(_ process: @escaping @Sendable ([DataPacket]) throws -> Void) async throws {
        var processed: Int64 = 0
        for await _ in arrivals {
            let (packets, failure, total) = state.withLock { state in
                defer { state.arrived = [] }
                return (state.arrived, state.failure, state.isAllRequested ? state.requested : nil)
            }
            if !packets.isEmpty { try await threads.run { try process(packets) } }
            if let failure { throw failure }
            processed += packets.reduce(0) { $0 + Int64($1.bytes.count) }
            if processed == total { return }
            unprocessed.release(bytes: packets.reduce(0) { $0 + $1.bytes.count }, requests: packets.count { $0.isLast })
        }
        throw CancellationError()
    }

    private func end() {
        state.withLock { state in
            state.isOver = true
            state.arrived = []
        }
    }
}
