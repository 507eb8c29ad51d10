import Locking
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

enum ConnectionCommand: Sendable {
    case open(ChannelRequest)
    case close(ChannelRequest.ID)
}

/// Passes commands from other threads to a connection's thread, and wakes that thread.
final class ConnectionMailbox: Sendable {
    private struct State {
        var commands: [ConnectionCommand] = []
        var lastID: ChannelRequest.ID = 0
        var isStopping = false
        var isClosed = false
        /// Whether the thread is sleeping or about to sleep. Only a byte in the pipe then wakes the thread.
        var isWaiting = false
        var isWoken = false

        /// Makes the thread check its channels before it sleeps again.
        ///
        /// - Returns: Whether the caller must send a byte through the pipe to wake the thread.
        mutating func requestWake() -> Bool {
            isWoken = true
            defer { isWaiting = false }
            return isWaiting
        }
    }

    private let state = Locked(State())
    private let wakePipeReader: FileDescriptor
    private let wakePipeWriter: FileDescriptor

    init() throws(TransferError) {
        do {
            (wakePipeReader, wakePipeWriter) = try FileDescriptor.privatePipe()
        } catch {
            throw TransferError(
                .noSpace, .internalFailure, "Cannot create a pipe: this machine is out of file descriptors.", cause: "\(error)")
        }
        for end in [wakePipeReader, wakePipeWriter] { _ = fcntl(end.rawValue, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        try? wakePipeReader.close()
        try? wakePipeWriter.close()
    }

    func nextID() -> ChannelRequest.ID {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    // MARK: From any thread

    /// Adds a command for the thread.
    ///
    /// - Returns: Whether the thread will execute the command; false after the thread has ended.
    @discardableResult
    func post(_ command: ConnectionCommand) -> Bool {
        let (isAccepted, isAsleep) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.commands.append(command)
            return (true, state.requestWake())
        }
        if isAsleep { wakeThread() }
        return isAccepted
    }

    func wake() {
        if state.withLock({ $0.requestWake() }) { wakeThread() }
    }

    func stop() {
        let isAsleep = state.withLock { state in
            state.isStopping = true
            return state.requestWake()
        }
        if isAsleep { wakeThread() }
    }

    /// The caller must not hold the lock.
    private func wakeThread() {
        // If the pipe is full, the write fails, but the bytes in the pipe wake the thread.
        _ = try? wakePipeWriter.writeAll([0])
    }

    // MARK: From the connection's thread

    func takeCommands() -> [ConnectionCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }

    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Rejects all later commands, and returns the commands that the thread has not executed.
    func close() -> [ConnectionCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            state.isClosed = true
            return state.commands
        }
    }

    /// Sleeps until a descriptor is ready, another thread wakes this one through the mailbox, or the time has passed. A negative time means
    /// no limit.
    ///
    /// - Returns: The events of each descriptor, in order; 0 for a descriptor that is not ready.
    func sleep(_ descriptors: [(descriptor: CInt, events: Int32)], milliseconds: Int32) -> [Int32] {
        let isWoken = state.withLock { state in
            defer { state.isWoken = false }
            state.isWaiting = !state.isWoken
            return state.isWoken
        }
        var polled = descriptors.map { pollfd(fd: $0.descriptor, events: Int16(truncatingIfNeeded: $0.events), revents: 0) }
        polled.append(pollfd(fd: wakePipeReader.rawValue, events: Int16(POLLIN), revents: 0))
        _ = unsafe poll(&polled, nfds_t(polled.count), isWoken ? 0 : milliseconds)
        state.withLock { state in
            state.isWaiting = false
            state.isWoken = false
        }
        if polled[polled.count - 1].revents != 0 {
            _ = unsafe withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { unsafe try? wakePipeReader.read(into: $0) }
        }
        return polled.dropLast().map { Int32($0.revents) }
    }

    /// Returns whether a descriptor is ready now.
    func isReady(_ descriptor: CInt, for events: Int32) -> Bool {
        var polled = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
        return unsafe poll(&polled, 1, 0) == 1 && Int32(polled.revents) & events != 0
    }

    /// Sleeps until a descriptor is ready, another thread wakes this one through the mailbox, the deadline has passed, or the time `atMost`
    /// has elapsed. Used while the connection is being established.
    ///
    /// - Throws: The deadline's error after the deadline, or `CancellationError` if the connection must stop.
    func wait(for events: Int32, on descriptor: CInt?, by deadline: Deadline, atMost: Duration? = nil) throws {
        guard !isStopping else { throw CancellationError() }
        let rest = deadline.milliseconds
        guard rest > 0 else { throw deadline.error }
        _ = sleep(descriptor.map { [($0, events)] } ?? [], milliseconds: min(rest, atMost?.pollMilliseconds ?? rest))
        guard !isStopping else { throw CancellationError() }
    }
}
