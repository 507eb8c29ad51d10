import Locking
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A server on a free port of the loopback interface. A closure of the test handles the raw bytes of each connection.
package final class RawServer: Sendable {
    /// A connection to the server. Its methods block, so call them on a separate thread.
    package struct Connection: Sendable {
        let descriptor: CInt

        /// Sends bytes.
        ///
        /// - Returns: Whether the operating system accepted all bytes.
        @discardableResult package func send(_ bytes: [UInt8]) -> Bool {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = unsafe rest.withUnsafeBytes { unsafe systemSend(descriptor, $0.baseAddress, $0.count) }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }

        /// Waits for bytes.
        ///
        /// - Returns: At least one byte, or no bytes at the end of the connection.
        package func receive() -> [UInt8] {
            var buffer = [UInt8](repeating: 0, count: 32 << 10)
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
            return Array(buffer.prefix(max(0, count)))
        }

        /// Ends the output, and waits for the other end to close.
        package func endOutputAndWait() {
            shutdown(descriptor, CInt(SHUT_WR))
            waitForEnd()
        }

        /// Waits for the other end to close.
        package func waitForEnd() {
            while !receive().isEmpty {}
        }

        /// Ends the input. When the connection is closed, the system resets it instead of ending it normally (tcp(7), socket(7), SO_LINGER).
        package func reset() {
            var option = linger(l_onoff: 1, l_linger: 0)
            _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
            shutdown(descriptor, CInt(SHUT_RD))
        }
    }

    private struct State {
        var connections: Set<CInt> = []
        var isListening = true
        var isStopped = false
        var accepted = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    package let port: UInt16
    private let listener: CInt
    private let state = Locked(State())

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - bufferSize: The size of the receive buffers, or nil for the system's default.
    ///   - serve: Called on a separate thread for each connection. The connection is closed when the closure returns.
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
                    // Removes the descriptor before closing it, because the system may reuse the number immediately.
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

    package var accepted: Int { state.withLock { $0.accepted } }

    /// Waits until all connections are closed.
    package func waitUntilIdle() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if !state.connections.isEmpty { state.waiters.append(continuation) }
                return state.connections.isEmpty
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Breaks all current connections.
    package func cut() {
        state.withLock { state in
            for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
        }
    }

    /// Ends the server. Call this at the end of each test.
    package func stop() {
        state.withLock { state in
            state.isStopped = true
            for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
            if state.isListening { shutdown(listener, CInt(SHUT_RDWR)) }
        }
    }
}

/// A connection to a server on the loopback interface, without any protocol.
package struct RawClient: Sendable {
    private let descriptor: CInt

    package init(to port: UInt16) throws {
        guard let descriptor = Loopback.connect(to: port) else { throw Loopback.SocketError() }
        self.descriptor = descriptor
    }

    /// Waits for bytes. Blocks.
    ///
    /// - Returns: At least one byte, or no bytes at the end of the connection.
    package func receive() -> [UInt8] { RawServer.Connection(descriptor: descriptor).receive() }

    /// Closes the connection.
    package func close() { shutdown(descriptor, CInt(SHUT_RDWR)); systemClose(descriptor) }
}

// Called in `RawClient.close()`, where the method's name hides the system's function.
private func systemClose(_ descriptor: CInt) { close(descriptor) }

private func systemSend(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    unsafe send(descriptor, bytes, count, CInt(MSG_NOSIGNAL))
}
