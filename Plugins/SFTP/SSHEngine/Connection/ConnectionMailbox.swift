import Locking
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What other threads ask of a connection's thread.
enum ConnectionCommand: Sendable {
    case open(ChannelOrder)
    case close(ChannelOrder.ID)
}

/// The one way from other threads to a connection's thread.
final class ConnectionMailbox: Sendable {
    private struct State {
        var commands: [ConnectionCommand] = []
        var lastID: ChannelOrder.ID = 0
        var isStopping = false
        var isClosed = false
        /// The thread sleeps, or is about to: a byte in the pipe wakes it.
        var isWaiting = false
        /// Somebody wants the thread to look round once.
        var isWoken = false

        /// - Returns: Whether the thread sleeps, and nobody else wakes it.
        mutating func wakes() -> Bool {
            isWoken = true
            defer { isWaiting = false }
            return isWaiting
        }
    }

    private let state = Locked(State())
    private let wakeUp: FileDescriptor
    private let doorbell: FileDescriptor

    init() throws(TransferError) {
        do {
            (wakeUp, doorbell) = try FileDescriptor.privatePipe()
        } catch {
            throw TransferError(.noSpace, .internalFailure, "No pipe can be made: this machine is out of descriptors.", cause: "\(error)")
        }
        for end in [wakeUp, doorbell] { _ = fcntl(end.rawValue, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        try? wakeUp.close()
        try? doorbell.close()
    }

    func nextID() -> ChannelOrder.ID {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    // MARK: From any thread

    /// - Returns: Whether the thread will see it; false once it has ended.
    @discardableResult
    func post(_ command: ConnectionCommand) -> Bool {
        let (isTaken, isAsleep) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.commands.append(command)
            return (true, state.wakes())
        }
        if isAsleep { ring() }
        return isTaken
    }

    /// Lets the thread look at its channels.
    func wake() {
        if state.withLock({ $0.wakes() }) { ring() }
    }

    /// Lets the thread end as soon as it can.
    func stop() {
        let isAsleep = state.withLock { state in
            state.isStopping = true
            return state.wakes()
        }
        if isAsleep { ring() }
    }

    /// Not under the lock, which everybody who has a request wants. A ring that comes when the thread is awake again only lets it look round once
    /// more.
    private func ring() {
        // A pipe that is full wakes as well.
        _ = try? doorbell.writeAll([0])
    }

    // MARK: From the connection's thread

    func takeCommands() -> [ConnectionCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }

    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Takes no further commands, and returns those that came too late.
    func close() -> [ConnectionCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            state.isClosed = true
            return state.commands
        }
    }

    /// Sleeps until a descriptor is ready, somebody rings, or the time is over.
    ///
    /// - Returns: What the descriptors are ready for.
    func sleep(_ descriptors: [(descriptor: CInt, events: Int32)], milliseconds: Int32) -> [Int32] {
        let isWoken = state.withLock { state in
            defer { state.isWoken = false }
            state.isWaiting = !state.isWoken
            return state.isWoken
        }
        var polled = descriptors.map { pollfd(fd: $0.descriptor, events: Int16(truncatingIfNeeded: $0.events), revents: 0) }
        polled.append(pollfd(fd: wakeUp.rawValue, events: Int16(POLLIN), revents: 0))
        _ = unsafe poll(&polled, nfds_t(polled.count), isWoken ? 0 : milliseconds)
        state.withLock { state in
            state.isWaiting = false
            state.isWoken = false
        }
        if polled[polled.count - 1].revents != 0 {
            _ = unsafe withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { unsafe try? wakeUp.read(into: $0) }
        }
        return polled.dropLast().map { Int32($0.revents) }
    }

    /// Whether a descriptor is ready now.
    func isReady(_ descriptor: CInt, for events: Int32) -> Bool {
        var polled = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
        return unsafe poll(&polled, 1, 0) == 1 && Int32(polled.revents) & events != 0
    }

    /// Sleeps as ``sleep(_:milliseconds:)`` does while the connection is being made.
    ///
    /// - Throws: The deadline's error once it is over, and `CancellationError` if the connection is no longer wanted.
    func wait(for events: Int32, on descriptor: CInt?, by deadline: Deadline, atMost: Duration? = nil) throws {
        guard !isStopping else { throw CancellationError() }
        let rest = deadline.milliseconds
        guard rest > 0 else { throw deadline.error }
        _ = sleep(descriptor.map { [($0, events)] } ?? [], milliseconds: min(rest, atMost?.pollMilliseconds ?? rest))
        guard !isStopping else { throw CancellationError() }
    }
}
