import Foundation
import Locking
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The file that an app's stream goes through: its tail is written as the app produces, its head is given back as the other end confirms.
///
/// It outlives the process: a stream that is whole needs nobody any more, and one that is not can be continued by another producer.
package final class StreamSpool: Sendable {
    private struct State: Sendable {
        /// Nil if it was that of a process that has ended.
        var producer: StreamProducer?
        var pump: Task<Void, Never>?
        var hasBegun = false
        /// Whether there is a file, made by an earlier process.
        var isFound = false
        /// Whether the file has all of the stream, and says so.
        var isWhole = false
        var written: Int64 = 0
        /// What the other end has, as the transport says; the producer may be so much further.
        var confirmed: Int64 = 0
        /// What a stored checkpoint vouches for.
        var saved: Int64 = 0
        /// What was given back, or is about to be.
        var released: Int64 = 0
        var isHeldBack = false
        /// Up to where the producer may come whatever is confirmed.
        var needed: Int64 = 0
        var isEnded = false
    }

    /// Between two pieces that are given back, so that it is not done for every chunk.
    private static let pieceSize: Int64 = 1 << 20
    /// Before a full disk is tried again.
    private static let diskDelay = Duration.seconds(5)

    let growth: SourceGrowth
    let name: String
    private let path: FilePath
    private let clock: EngineClock
    private let state: Locked<State>
    private let changes = ChangeSignal()
    /// Locked while it is used, on threads that may block, so that it is never closed meanwhile.
    private let file = Locked<FileDescriptor?>(nil)

    /// - Parameter name: The remote name, for messages.
    convenience init(_ producer: StreamProducer, at path: FilePath, for name: String, clock: EngineClock) {
        self.init(State(producer: producer), at: path, for: name, length: producer.length, .growing(0), clock)
    }

    /// Makes one of what an earlier process left.
    convenience init(_ left: LeftStream, at path: FilePath, clock: EngineClock) {
        let offset = left.offset
        let state = State(
            isFound: left.size != nil, isWhole: left.isWhole, written: offset, confirmed: left.confirmed, saved: left.confirmed,
            released: left.confirmed)
        self.init(
            state, at: path, for: left.destination.description, length: left.length,
            left.isWhole ? .complete(offset) : .growing(offset), clock)
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
        lifted.withLock { $0 = { [weak self] in self?.lift(to: $0) } }
    }

    /// What can't be read any more, from the start.
    var released: Int64 { state.withLock { $0.released } }

    /// Whether there is nothing to send, or less than the transport needs at once, because the app has produced no more, and not because it may
    /// not.
    func isAwaited(at position: Int64) -> Bool {
        let isShort = state.withLock { !$0.isHeldBack && !$0.isEnded && (position >= $0.written || $0.written < $0.needed) }
        return isShort && growth.extent.isGrowing
    }

    // MARK: Producers

    /// From where on another producer is needed; nil if none is.
    var missingFrom: Int64? {
        state.withLock { $0.producer == nil && !$0.isWhole && !$0.isEnded ? $0.written : nil }
    }

    /// - Returns: Whether it is needed.
    func attach(_ producer: StreamProducer) -> Bool {
        state.withLock { state in
            guard state.producer == nil, !state.isWhole, !state.isEnded else { return false }
            state.producer = producer
            return true
        }
    }

    /// Nothing was read: the producer may be handed over elsewhere.
    func giveUpProducer() {
        state.withLock { $0.producer }?.unclaim()
    }

    // MARK: Producing

    /// Begins to read the stream, unless that was begun before. The file is there when this returns.
    ///
    /// - Throws: A ``TransferError`` of the class `noSpace` or `sourceLost`.
    func begin() async throws {
        let (producer, isFound, offset) = state.withLock { ($0.hasBegun || $0.isWhole ? nil : $0.producer, $0.isFound, $0.written) }
        guard let producer else {
            if missingFrom != nil { throw failure("the process that produced it has ended. Continue it, or enqueue it anew.") }
            return
        }
        let path = path
        let opened = try await DiskThread.run(.storage) { () throws(TransferError) in
            do {
                return isFound ? try Spool.reopen(path, at: offset) : try Spool.make(path)
            } catch {
                throw .destinationUnavailable(path, errno: (error as? Errno ?? .ioError).rawValue)
            }
        }
        let isUsed = state.withLock { state in
            guard !state.isEnded, !state.hasBegun else { return false }
            state.hasBegun = true
            file.withLock { $0 = opened }
            state.pump = Task { await self.pump(producer) }
            return true
        }
        if !isUsed { try? opened.close() }
    }

    private func pump(_ producer: StreamProducer) async {
        do {
            try await producer.produce { [weak self] chunk in
                guard let self else { throw CancellationError() }
                try await write(chunk, producer)
            }
            let written = state.withLock { $0.written }
            if let length = growth.length, written != length { throw wrongLength("\(written)") }
            try await withFile { [path] in try Spool.seal($0, in: path.removingLastComponent()) }
            state.withLock { $0.isWhole = true }
            producer.tell(.sealed)
            growth.update(.complete(written))
        } catch let error as TransferError where error.code == .producerGone {
            growth.update(.failed(failure(error.message)))
        } catch is CancellationError where Task.isCancelled {
            growth.update(.failed(failure("It was cancelled.")))
        } catch {
            growth.update(.failed(failure("\(error)")))
        }
    }

    private func failure(_ reason: String) -> TransferError {
        TransferError(.sourceLost, .producerGone, "The stream for \(name) did not come to its end: \(reason)")
    }

    private func wrongLength(_ number: String) -> TransferError {
        TransferError(.sourceLost, .producerGone, "it has \(number) bytes instead of the \(growth.length ?? 0) that it was to have.")
    }

    /// Writes a chunk, as far as there is room each time.
    private func write(_ chunk: Data, _ producer: StreamProducer) async throws {
        let end = state.withLock { $0.written } + Int64(chunk.count)
        if let length = growth.length, end > length { throw wrongLength("more") }
        var rest = chunk
        while !rest.isEmpty {
            let room = try await waitForRoom(producer.ahead)
            let piece = rest.prefix(Int(clamping: room))
            try await append(Data(piece))
            producer.tell(.stored(piece.count))
            rest = rest.dropFirst(piece.count)
        }
    }

    private func waitForRoom(_ ahead: Int64) async throws -> Int64 {
        while true {
            let version = changes.version
            let room = state.withLock { state in
                let room = max(state.confirmed + min(ahead, .max - state.confirmed), state.needed) - state.written
                state.isHeldBack = room <= 0
                return room
            }
            if room > 0 { return room }
            try await changes.wait(after: version)
        }
    }

    /// Lets the producer come to an offset without waiting for confirmations.
    private func lift(to offset: Int64) {
        state.withLock { $0.needed = max($0.needed, offset) }
        changes.send()
    }

    /// The disk may be full for a while: nothing of the stream is lost by waiting.
    private func append(_ piece: Data) async throws {
        let offset = state.withLock { $0.written }
        while true {
            do {
                try await withFile { file in
                    try unsafe piece.withUnsafeBytes { _ = unsafe try file.writeAll(toAbsoluteOffset: offset, $0) }
                }
                break
            } catch let error as Errno where error.rawValue == ENOSPC || error.rawValue == EDQUOT {
                try await clock.sleep(Self.diskDelay)
            }
        }
        let written = offset + Int64(piece.count)
        state.withLock { $0.written = written }
        growth.update(.growing(written))
    }

    /// - Throws: What the body throws; `CancellationError` once the file was closed.
    private func withFile(_ body: @escaping @Sendable (FileDescriptor) throws -> Void) async throws {
        try await DiskThread.run(.storage) { [file] in
            try file.withLock { file in
                guard let file else { throw CancellationError() }
                try body(file)
            }
        }
    }

    // MARK: Giving back

    /// The other end has the bytes before an offset. From any thread.
    func confirm(_ offset: Int64) {
        let isNews = state.withLock { state in
            let offset = min(offset, state.written)
            defer { state.confirmed = max(state.confirmed, offset) }
            return offset > state.confirmed
        }
        guard isNews else { return }
        changes.send()
        giveBack()
    }

    /// A stored checkpoint vouches for the bytes before an offset.
    func save(_ offset: Int64) {
        state.withLock { $0.saved = max($0.saved, offset) }
        confirm(offset)
        giveBack()
    }

    /// Gives the bytes back to the disk that neither this nor a later attempt will read. Where the file system can't, the file keeps them until
    /// it goes.
    private func giveBack() {
        let piece = state.withLock { state -> Range<Int64>? in
            let end = min(state.confirmed, state.saved)
            guard end - state.released >= Self.pieceSize, state.hasBegun, !state.isEnded else { return nil }
            defer { state.released = end }
            return state.released..<end
        }
        guard let piece else { return }
        Task { try? await withFile { FileBlocks.punch($0, piece) } }
    }

    // MARK: The end

    /// Nobody reads any more, and whoever still produces is told. The file is closed when the task ends.
    ///
    /// - Parameter keepsFile: Whether a later process may go on with it; otherwise it goes.
    @discardableResult
    func end(_ error: TransferError, keepsFile: Bool = false) -> Task<Void, Never>? {
        let (pump, producer, isFirst) = state.withLock { state in
            defer { state.isEnded = true }
            return (state.pump, state.producer, !state.isEnded)
        }
        guard isFirst else { return nil }
        pump?.cancel()
        producer?.tell(.refused(error))
        growth.update(.failed(error))
        return Task { [file, path] in
            await DiskThread.run(.storage) {
                file.withLock { file in
                    try? file?.close()
                    file = nil
                }
                if !keepsFile { _ = unsafe path.withPlatformString { unsafe unlink($0) } }
            }
        }
    }
}

extension SourceGrowth.Extent {
    fileprivate var isGrowing: Bool { if case .growing = self { true } else { false } }
}
