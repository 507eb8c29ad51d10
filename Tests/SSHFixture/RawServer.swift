import Locking
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A server on a free port of the loopback interface that does with each connection what a test says, byte by byte. Ends with ``stop()``.
package final class RawServer: Sendable {
    /// A connection to it. Its functions block, on a thread of the server's.
    package struct Connection: Sendable {
        let descriptor: CInt

        /// - Returns: Whether the other end, or its system, took all of it.
        @discardableResult package func send(_ bytes: [UInt8]) -> Bool {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = unsafe rest.withUnsafeBytes { unsafe systemSend(descriptor, $0.baseAddress, $0.count) }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }

        /// - Returns: Some bytes; none at the end.
        package func receive() -> [UInt8] {
            var chunk = [UInt8](repeating: 0, count: 32 << 10)
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
            return Array(chunk.prefix(max(0, count)))
        }

        /// Sends no more, and waits for the other end to close.
        package func endOutputAndWait() {
            shutdown(descriptor, CInt(SHUT_WR))
            waitForEnd()
        }

        /// Waits for the other end to close.
        package func waitForEnd() {
            while !receive().isEmpty {}
        }
    }

    private struct State {
        var connections: Set<CInt> = []
        var isListening = true
        var isStopped = false
        var accepted = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// The port that it listens on.
    package let port: UInt16
    private let listener: CInt
    private let state = Locked(State())

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - bufferSize: That of the receive buffers, if not the system's choice.
    ///   - serve: Called on a thread of its own for each connection, which is closed when it returns.
    package init(bufferSize: Int? = nil, _ serve: @escaping @Sendable (Connection) -> Void) throws {
        (listener, port) = try Loopback.listen(bufferSize: bufferSize.map { CInt($0) })
        let (listener, state) = (listener, state)
        try startThread {
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { break }
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                let isStopped = state.withLock { state in
                    state.connections.insert(descriptor)
                    state.accepted += 1
                    return state.isStopped
                }
                let finish = { @Sendable in
                    // A number leaves before it is closed, as it may be someone else's the moment after.
                    let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                        state.connections.remove(descriptor)
                        close(descriptor)
                        guard state.connections.isEmpty else { return [] }
                        defer { state.waiters = [] }
                        return state.waiters
                    }
                    for waiter in waiters { waiter.resume() }
                }
                guard !isStopped,
                    (try? startThread {
                        serve(Connection(descriptor: descriptor)); finish()
                    }) != nil
                else {
                    finish()
                    continue
                }
            }
            state.withLock { state in
                state.isListening = false
                close(listener)
            }
        }
    }

    /// How many connections were made so far.
    package var accepted: Int { state.withLock { $0.accepted } }

    /// Waits until there is no connection.
    package func waitUntilIdle() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if !state.connections.isEmpty { state.waiters.append(continuation) }
                return state.connections.isEmpty
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Breaks all connections that there are now.
    package func cut() {
        state.withLock { state in
            for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
        }
    }

    /// Ends everything. To be called at the end of each test.
    package func stop() {
        state.withLock { state in
            state.isStopped = true
            for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
            if state.isListening { shutdown(listener, CInt(SHUT_RDWR)) }
        }
    }
}

/// A connection to a server on the loopback interface that nothing is said over.
package struct RawClient: Sendable {
    private let descriptor: CInt

    /// Connects.
    package init(to port: UInt16) throws {
        guard let descriptor = Loopback.connect(to: port) else { throw Loopback.CannotListen() }
        self.descriptor = descriptor
    }

    /// - Returns: Some bytes; none at the end. Blocks.
    package func receive() -> [UInt8] { RawServer.Connection(descriptor: descriptor).receive() }

    /// Ends it.
    package func close() { shutdown(descriptor, CInt(SHUT_RDWR)); systemClose(descriptor) }
}

// A method of the same name hides the system's function.
private func systemClose(_ descriptor: CInt) { close(descriptor) }

private func systemSend(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    unsafe send(descriptor, bytes, count, CInt(MSG_NOSIGNAL))
}
