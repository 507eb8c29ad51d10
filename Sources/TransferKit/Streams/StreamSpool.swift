import Foundation
import Locking
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The file that buffers an app's stream. The queue appends the app's bytes to the file, and frees the disk space of confirmed bytes at the
/// beginning of the file.
///
/// The file outlives the process. A complete stream needs no producer. Another producer can continue an incomplete stream.
package final class StreamSpool: Sendable {
    private struct State: Sendable {
        /// Nil if the producer belonged to a process that has ended, until another producer continues the stream.
        var producer: StreamProducer?
        /// The task that copies the producer's bytes to the file.
        var pump: Task<Void, Never>?
        var hasStarted = false
        /// Whether an earlier process created the file.
        var hasExistingFile = false
        /// Whether the file contains all bytes of the stream, and is marked as complete.
        var isComplete = false
        /// The offset after the last byte in the file.
        var written: Int64 = 0
        /// The number of bytes that the server has, according to the transport. The producer may be at most `ahead` bytes ahead of this
        /// number, or reach ``requiredOffset``.
        var confirmed: Int64 = 0
        /// The number of bytes that a stored checkpoint covers.
        var saved: Int64 = 0
        /// The bytes before this offset have been freed, or will be freed.
        var released: Int64 = 0
        /// Whether the producer must wait, because the producer is too far ahead of the confirmed bytes.
        var isPaused = false
        /// The offset that the producer may reach regardless of confirmations.
        var requiredOffset: Int64 = 0
        var isEnded = false
    }

    /// A reason why the stream is delayed.
    enum Delay: Sendable {
        /// The error that reports a full disk, for which the producer waits; nil if the producer no longer waits.
        case shortage(TransferError?)
        /// The transport sends nothing before the end of the stream. Reported once.
        case untilComplete
    }

    private struct Delays: Sendable {
        /// The error that reports the full disk; nil if the producer does not wait for disk space.
        var shortage: TransferError?
        /// Whether a receiver was notified that the transport waits for the end of the stream.
        var hasReportedWaitForEnd = false
        var receiver: (@Sendable (Delay) -> Void)?
    }

    /// The minimum size in bytes of a range to free. Without a minimum, each confirmation would free a range.
    private static let minimumFreedSize: Int64 = 1 << 20
    /// The delay before a write to a full disk is retried.
    static let fullDiskRetryDelay = Duration.seconds(5)

    let growth: SourceGrowth
    let name: String
    private let path: FilePath
    private let clock: EngineClock
    private let state: Locked<State>
    private let changes = ChangeSignal()
    /// Receives the size once the stream is complete.
    private let sizeReceiver = Locked<(@Sendable (Int64) -> Void)?>(nil)
    private let delays = Locked(Delays())
    /// The file, if it is open. Threads hold the lock while they use the file, so that no other thread closes it. These threads may block.
    private let file = Locked<FileDescriptor?>(nil)

    /// - Parameter name: The remote name, for messages.
    convenience init(_ producer: StreamProducer, at path: FilePath, for name: String, clock: EngineClock) {
        self.init(State(producer: producer), at: path, for: name, length: producer.length, .growing(0), clock)
    }

    /// Creates the spool of a stream that an earlier process left.
    convenience init(_ stored: StoredStream, at path: FilePath, clock: EngineClock) {
        let offset = stored.offset
        let state = State(
            hasExistingFile: stored.size != nil, isComplete: stored.isComplete, written: offset, confirmed: stored.confirmed,
            saved: stored.confirmed, released: stored.confirmed)
        self.init(
            state, at: path, for: stored.destination.description, length: stored.length,
            stored.isComplete ? .complete(offset) : .growing(offset), clock)
    }

    private init(
        _ state: State, at path: FilePath, for name: String, length: Int64?, _ extent: SourceGrowth.Extent, _ clock: EngineClock
    ) {
        self.state = Locked(state)
        self.path = path
        self.name = name
        self.clock = clock
        let confirmed = Locked<(@Sendable (Int64) -> Void)?>(nil)
        let lifted = Locked<(@Sendable (Int64) -> Void)?>(nil)
        growth = SourceGrowth(
            extent, length: length, release: { offset in confirmed.withLock { $0 }?(offset) },
            lift: { offset in lifted.withLock { $0 }?(offset) })
        confirmed.withLock { $0 = { [weak self] in self?.confirm($0) } }
        lifted.withLock { $0 = { [weak self] in self?.raiseLimit(to: $0) } }
        growth.whenReadable(at: .max) { [weak self] in self?.reportSize() }
    }

    /// The offset of the first byte that can still be read.
    var released: Int64 { state.withLock { $0.released } }

    /// Sets a callback for the size of the stream. The callback is called once: when the stream becomes complete, or immediately if the stream
    /// is already complete. Replaces the previous callback; nil removes it.
    ///
    /// Many attempts may end before the stream is complete, so each attempt removes its callback when it ends.
    func whenComplete(_ call: (@Sendable (Int64) -> Void)?) {
        sizeReceiver.withLock { $0 = call }
        reportSize()
    }

    /// Sets a callback for delays. If the producer already waits for disk space, the callback is also called immediately. Replaces the
    /// previous callback; nil removes it. The callback must not block.
    func whenDelayed(_ call: (@Sendable (Delay) -> Void)?) {
        delays.withLock { delays in
            delays.receiver = call
            if let error = delays.shortage { call?(.shortage(error)) }
        }
    }

    private func setShortage(_ error: TransferError?) {
        delays.withLock { delays in
            guard (delays.shortage == nil) != (error == nil) else { return }
            delays.shortage = error
            delays.receiver?(.shortage(error))
        }
    }

    private func reportSize() {
        guard case .complete(let size) = growth.extent else { return }
        sizeReceiver.withLock { $0.take() }?(size)
    }

    /// Whether the transport waits for the app: the producer need not wait, but has not yet produced the byte at the position, or has not yet
    /// produced all bytes that the transport needs.
    func isAwaited(at position: Int64) -> Bool {
        guard case .growing(let readable) = growth.extent else { return false }
        return state.withLock { !$0.isPaused && !$0.isEnded && (position >= readable || $0.written < $0.requiredOffset) }
    }

    // MARK: Producers

    /// The offset from which another producer must continue; nil if no other producer is needed.
    var continuationOffset: Int64? {
        state.withLock { $0.producer == nil && !$0.isComplete && !$0.isEnded ? $0.written : nil }
    }

    /// Continues the stream with another producer.
    ///
    /// - Returns: False if the stream needs no other producer.
    func attach(_ producer: StreamProducer) -> Bool {
        state.withLock { state in
            guard state.producer == nil, !state.isComplete, !state.isEnded else { return false }
            state.producer = producer
            return true
        }
    }

    /// Allows another item to use the producer, because nothing was read from it.
    func releaseProducer() {
        state.withLock { $0.producer }?.unclaim()
    }

    // MARK: Reading from the producer

    /// Starts to read from the producer, unless reading has already started. The file exists when the call returns.
    ///
    /// - Throws: A ``TransferError`` of the class `sourceLost` if another producer is needed; otherwise the error of creating or opening
    ///   the file.
    func start() async throws {
        let (producer, hasExistingFile, offset) = state.withLock {
            ($0.hasStarted || $0.isComplete ? nil : $0.producer, $0.hasExistingFile, $0.written)
        }
        guard let producer else {
            if continuationOffset != nil {
                throw failure("the process that produced it has ended. Continue the stream, or enqueue it again.")
            }
            return
        }
        let path = path
        let opened = try await BlockingIO.run(.storage) { () throws(TransferError) in
            do {
                return hasExistingFile ? try Spool.reopen(path, at: offset) : try Spool.make(path)
            } catch {
                throw .destinationUnavailable(path, errno: (error as? Errno ?? .ioError).rawValue)
            }
        }
        let isUsed = state.withLock { state in
            guard !state.isEnded, !state.hasStarted else { return false }
            state.hasStarted = true
            file.withLock { $0 = opened }
            state.pump = Task { await self.pump(producer) }
            return true
        }
        if !isUsed { try? opened.close() }
    }

    private func pump(_ producer: StreamProducer) async {
        do {
            try await producer.produce { [weak self] bytes in
                guard let self else { throw CancellationError() }
                try await write(bytes, producer)
            }
            let written = state.withLock { $0.written }
            if let length = growth.length, written != length { throw wrongLength("\(written)", insteadOf: length) }
            try await withFile { [path] in try Spool.seal($0, in: path.removingLastComponent()) }
            state.withLock { $0.isComplete = true }
            producer.report(.sealed)
            growth.update(.complete(written))
        } catch let error as TransferError where error.code == .producerGone {
            growth.update(.failed(failure(error.message)))
        } catch is CancellationError where Task.isCancelled {
            growth.update(.failed(failure("it was cancelled.")))
        } catch {
            growth.update(.failed(failure("\(error)")))
        }
    }

    private func failure(_ reason: String) -> TransferError {
        TransferError(.sourceLost, .producerGone, "The stream for \(name) failed: \(reason)")
    }

    private func wrongLength(_ number: String, insteadOf length: Int64) -> TransferError {
        TransferError(.sourceLost, .producerGone, "it has \(number) bytes, but its declared length is \(length) bytes.")
    }

    /// Writes bytes of the producer to the file. Waits while the producer is too far ahead of the confirmed bytes. If there is room for only
    /// some of the bytes, writes those first.
    ///
    /// - Throws: A ``TransferError`` if the stream is longer than its declared length; an `Errno` if the file can't be written;
    ///   `CancellationError`.
    private func write(_ bytes: Data, _ producer: StreamProducer) async throws {
        let end = state.withLock { $0.written } + Int64(bytes.count)
        if let length = growth.length, end > length { throw wrongLength("more than \(length)", insteadOf: length) }
        var rest = bytes
        while !rest.isEmpty {
            let room = try await waitForRoom(producer.ahead)
            let next = rest.prefix(Int(clamping: room))
            try await append(Data(next))
            producer.report(.stored(next.count))
            rest = rest.dropFirst(next.count)
        }
    }

    private func waitForRoom(_ ahead: Int64) async throws -> Int64 {
        while true {
            let version = changes.version
            let room = state.withLock { state in
                let room = max(state.confirmed + min(ahead, .max - state.confirmed), state.requiredOffset) - state.written
                state.isPaused = room <= 0
                return room
            }
            if room > 0 { return room }
            try await changes.wait(after: version)
        }
    }

    /// Lets the producer reach an offset without waiting for confirmations.
    private func raiseLimit(to offset: Int64) {
        state.withLock { $0.requiredOffset = max($0.requiredOffset, offset) }
        changes.send()
        guard offset == .max, case .growing = growth.extent else { return }
        delays.withLock { delays in
            guard let receiver = delays.receiver, !delays.hasReportedWaitForEnd else { return }
            delays.hasReportedWaitForEnd = true
            receiver(.untilComplete)
        }
    }

    /// Appends bytes to the file. Waits while the disk is full, so no byte of the stream is lost, and reports the wait.
    private func append(_ bytes: Data) async throws {
        let offset = state.withLock { $0.written }
        while true {
            do {
                try await withFile { file in
                    try unsafe bytes.withUnsafeBytes { _ = unsafe try file.writeAll(toAbsoluteOffset: offset, $0) }
                }
                break
            } catch let error as Errno where error.rawValue == ENOSPC || error.rawValue == EDQUOT {
                setShortage(
                    TransferError(
                        .noSpace, .diskFull,
                        "The stream for \(name) waits, because the disk with \(path.removingLastComponent()) is full. Free some space.",
                        cause: "\(error)"))
                try await clock.sleep(Self.fullDiskRetryDelay)
            }
        }
        setShortage(nil)
        let written = offset + Int64(bytes.count)
        state.withLock { $0.written = written }
        growth.update(.growing(written))
    }

    /// Calls a closure with the open file, on a thread that may block.
    ///
    /// - Throws: The errors of the closure; `CancellationError` if the file was closed.
    private func withFile(_ body: @escaping @Sendable (FileDescriptor) throws -> Void) async throws {
        try await BlockingIO.run(.storage) { [file] in
            try file.withLock { file in
                guard let file else { throw CancellationError() }
                try body(file)
            }
        }
    }

    // MARK: Freeing disk space

    /// Records that the server has the bytes before an offset. Callable from any thread.
    func confirm(_ offset: Int64) {
        let isNew = state.withLock { state in
            let offset = min(offset, state.written)
            defer { state.confirmed = max(state.confirmed, offset) }
            return offset > state.confirmed
        }
        guard isNew else { return }
        changes.send()
        freeConfirmedBytes()
    }

    /// Records that a stored checkpoint covers the bytes before an offset.
    func save(_ offset: Int64) {
        state.withLock { $0.saved = max($0.saved, offset) }
        confirm(offset)
        freeConfirmedBytes()
    }

    /// Frees the disk space of bytes that no attempt will read again. If the file system can't free them, the bytes stay in the file until the file
    /// is deleted.
    private func freeConfirmedBytes() {
        let range = state.withLock { state -> Range<Int64>? in
            let end = min(state.confirmed, state.saved)
            guard end - state.released >= Self.minimumFreedSize, state.hasStarted, !state.isEnded else { return nil }
            defer { state.released = end }
            return state.released..<end
        }
        guard let range else { return }
        Task { try? await withFile { FileBlocks.punch($0, range) } }
    }

    // MARK: Ending the stream

    /// Stops reading from the producer, and reports the error to the producer.
    ///
    /// - Parameter keepsFile: Whether a later process may continue the stream; otherwise the file is deleted.
    /// - Returns: A task that ends when the file is closed; nil if the stream has already been ended.
    @discardableResult
    func end(_ error: TransferError, keepsFile: Bool = false) -> Task<Void, Never>? {
        let (pump, producer, isFirst) = state.withLock { state in
            defer { state.isEnded = true }
            return (state.pump, state.producer, !state.isEnded)
        }
        guard isFirst else { return nil }
        pump?.cancel()
        producer?.report(.refused(error))
        growth.update(.failed(error))
        return Task { [file, path] in
            await BlockingIO.run(.storage) {
                file.withLock { file in
                    try? file?.close()
                    file = nil
                }
                if !keepsFile { _ = unsafe path.withPlatformString { unsafe unlink($0) } }
            }
        }
    }
}
