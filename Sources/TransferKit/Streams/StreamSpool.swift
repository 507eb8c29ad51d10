import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The file that an app's stream goes through: its tail is written as the app produces, its head is given back as the other end confirms.
package final class StreamSpool: Sendable {
    private struct State: Sendable {
        var pump: Task<Void, Never>?
        var file: FileDescriptor?
        var written: Int64 = 0
        /// What the other end has, as the transport says; the producer may be so much further.
        var confirmed: Int64 = 0
        /// What a stored checkpoint vouches for.
        var saved: Int64 = 0
        /// What was given back, or is about to be.
        var released: Int64 = 0
        var isHeldBack = false
        /// Whether the producer may be as far ahead as the disk allows.
        var isUnlimited = false
        var isEnded = false
    }

    /// Between two pieces that are given back, so that it is not done for every chunk.
    private static let pieceSize: Int64 = 1 << 20
    /// Before a full disk is tried again.
    private static let diskDelay = Duration.seconds(5)

    let producer: StreamProducer
    private let path: FilePath
    private let name: String
    private let clock: EngineClock
    private let state = Locked(State())
    private let changes = ChangeSignal()
    let growth: SourceGrowth

    /// - Parameter name: The remote name, for messages.
    init(_ producer: StreamProducer, at path: FilePath, for name: String, clock: EngineClock) {
        self.producer = producer
        self.path = path
        self.name = name
        self.clock = clock
        let confirmed = Locked<(@Sendable (Int64) -> Void)?>(nil)
        let lifted = Locked<(@Sendable () -> Void)?>(nil)
        growth = SourceGrowth(
            length: producer.length, release: { offset in confirmed.withLock { $0 }?(offset) }, lift: { lifted.withLock { $0 }?() })
        confirmed.withLock { $0 = { [weak self] in self?.confirm($0) } }
        lifted.withLock { $0 = { [weak self] in self?.lift() } }
    }

    /// What can't be read any more, from the start.
    var released: Int64 { state.withLock { $0.released } }

    /// Whether there is nothing to send because the app has produced no more, and not because it may not.
    func isAwaited(at position: Int64) -> Bool {
        state.withLock { !$0.isHeldBack && !$0.isEnded && position >= $0.written } && growth.extent.isGrowing
    }

    // MARK: Producing

    /// Begins to read the stream, unless that was begun before. The file is there when this returns.
    ///
    /// - Throws: A ``TransferError`` of the class `noSpace` or `sourceLost`.
    func begin() async throws {
        guard state.withLock({ $0.file == nil && !$0.isEnded }) else { return }
        let path = path
        let file = try await DiskThread.run { () throws(TransferError) in
            do {
                return try Spool.make(path)
            } catch {
                throw .destinationUnavailable(path, errno: (error as? Errno ?? .ioError).rawValue)
            }
        }
        let isUsed = state.withLock { state in
            guard !state.isEnded, state.file == nil else { return false }
            state.file = file
            state.pump = Task { await self.pump() }
            return true
        }
        if !isUsed { try? file.close() }
    }

    private func pump() async {
        do {
            try await producer.produce { [weak self] chunk in
                guard let self else { throw CancellationError() }
                try await write(chunk)
            }
            let written = state.withLock { $0.written }
            if let length = producer.length, written != length { throw wrongLength("\(written)") }
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
        TransferError(.sourceLost, .producerGone, "it has \(number) bytes instead of the \(producer.length ?? 0) that it was to have.")
    }

    /// Writes a chunk, as far as there is room each time.
    private func write(_ chunk: Data) async throws {
        let end = state.withLock { $0.written } + Int64(chunk.count)
        if let length = producer.length, end > length { throw wrongLength("more") }
        var rest = chunk
        while !rest.isEmpty {
            let room = try await waitForRoom()
            let piece = rest.prefix(Int(clamping: room))
            try await append(Data(piece))
            rest = rest.dropFirst(piece.count)
        }
    }

    private func waitForRoom() async throws -> Int64 {
        while true {
            let version = changes.version
            let room = state.withLock { state in
                let room = state.isUnlimited ? .max : state.confirmed + producer.ahead - state.written
                state.isHeldBack = room <= 0
                return room
            }
            if room > 0 { return room }
            try await changes.wait(after: version)
        }
    }

    /// Lets the producer wait for confirmations no more.
    private func lift() {
        state.withLock { $0.isUnlimited = true }
        changes.send()
    }

    /// The disk may be full for a while: nothing of the stream is lost by waiting.
    private func append(_ piece: Data) async throws {
        guard let (file, offset) = state.withLock({ state in state.file.map { ($0, state.written) } }) else { throw CancellationError() }
        while true {
            do {
                try await DiskThread.run {
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

    /// Gives the bytes back to the disk that neither this nor a later attempt will read.
    private func giveBack() {
        let piece = state.withLock { state -> Range<Int64>? in
            let end = min(state.confirmed, state.saved)
            guard end - state.released >= Self.pieceSize, state.file != nil, !state.isEnded else { return nil }
            defer { state.released = end }
            return state.released..<end
        }
        guard let piece else { return }
        Task { await DiskThread.run { self.punch(piece) } }
    }

    /// Where the file system can't, the file keeps all of its bytes until it goes.
    private func punch(_ piece: Range<Int64>) {
        state.withLock { state in
            // Under the lock, so that the descriptor is not closed meanwhile.
            if let file = state.file { FileHole.punch(file, piece) }
        }
    }

    // MARK: The end

    /// Nobody reads any more: the file goes, and whoever still produces is told.
    func end(_ error: TransferError) {
        let (pump, isFirst) = state.withLock { state in
            defer { state.isEnded = true }
            return (state.pump, !state.isEnded)
        }
        guard isFirst else { return }
        pump?.cancel()
        producer.refuse(error)
        growth.update(.failed(error))
        Task { [self] in
            await pump?.value
            await DiskThread.run { [self] in
                let file = state.withLock { state in
                    defer { state.file = nil }
                    return state.file
                }
                try? file?.close()
                _ = unsafe path.withPlatformString { unsafe unlink($0) }
            }
        }
    }
}

extension SourceGrowth.Extent {
    fileprivate var isGrowing: Bool { if case .growing = self { true } else { false } }
}
