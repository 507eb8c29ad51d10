import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The other end is gone, or sent what is no HTTP.
enum ConnectionFailure: Error, Hashable {
    /// The connection ended, in the middle of something.
    case ended
    /// The request can't be understood; the text says why.
    case malformed(String)
}

/// A TCP connection. One thread reads, writes and closes it; others may interrupt it.
final class Connection: Sendable {
    /// Lower for connections that were accepted earlier.
    let number: Int
    private let descriptor: CInt
    private let state = Locked(State())

    private struct State {
        var isOpen = true
        var isReadingInterrupted = false
    }

    init(descriptor: CInt, number: Int) {
        self.number = number
        self.descriptor = descriptor
        var enabled: CInt = 1
        let size = socklen_t(MemoryLayout<CInt>.size)
        // An answer is one small write: waiting for the acknowledgement of the one before (Nagle) only delays it.
        unsafe setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &enabled, size)
        #if canImport(Darwin)
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &enabled, size)
        #endif
    }

    /// Whether another thread wants this connection's request to end.
    var isReadingInterrupted: Bool { state.withLock { $0.isReadingInterrupted } }

    /// Whether bytes, or the end, lie there to be read. From any thread.
    var isReadable: Bool {
        state.withLock { state in
            var event = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return unsafe state.isOpen && poll(&event, 1, 0) > 0
        }
    }

    /// Reads what is there into a buffer, waiting for the first byte.
    ///
    /// - Parameter isInterruptible: Whether ``interruptReading()`` ends the waiting.
    /// - Returns: How many bytes, 0 at the end.
    func receive(into buffer: inout [UInt8], isInterruptible: Bool) throws(ConnectionFailure) -> Int {
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe recv(descriptor, bytes.baseAddress, bytes.count, CInt(MSG_DONTWAIT))
            }
            if count >= 0 { return count }
            switch errno {
            case EINTR: continue
            case EAGAIN: if !waitUntilReadable(isInterruptible: isInterruptible) { return 0 }
            default: throw .ended
            }
        }
    }

    /// Waits for bytes or the end; false if the reading was interrupted and nothing came for a while.
    ///
    /// The while is for what the other end's system still has to send of a connection that its program already closed.
    private func waitUntilReadable(isInterruptible: Bool) -> Bool {
        while true {
            var event = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let isInterrupted = isInterruptible && isReadingInterrupted
            if unsafe poll(&event, 1, isInterruptible ? 100 : -1) > 0 { return true }
            if isInterrupted { return false }
        }
    }

    /// Writes all bytes.
    func send(_ bytes: [UInt8]) throws(ConnectionFailure) {
        #if canImport(Glibc)
            let flags = CInt(MSG_NOSIGNAL)
        #else
            let flags: CInt = 0
        #endif
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { all in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: all[sent...])
                #if canImport(Glibc)
                    return unsafe Glibc.send(descriptor, rest.baseAddress, rest.count, flags)
                #else
                    return unsafe Darwin.send(descriptor, rest.baseAddress, rest.count, flags)
                #endif
            }
            if count >= 0 {
                sent += count
            } else if errno != EINTR {
                throw .ended
            }
        }
    }

    /// Says that nothing more will be written; reading goes on.
    func endWriting() {
        shutDown(CInt(SHUT_WR))
    }

    /// Makes the reading thread see the end once it has read what is there and a tenth of a second passes without more. From any thread.
    func interruptReading() {
        state.withLock { $0.isReadingInterrupted = true }
    }

    /// Makes the owning thread see the end at once. From any thread.
    func interrupt() {
        shutDown(CInt(SHUT_RDWR))
    }

    func close() {
        state.withLock { state in
            guard state.isOpen else { return }
            state.isOpen = false
            #if canImport(Glibc)
                _ = Glibc.close(descriptor)
            #else
                _ = Darwin.close(descriptor)
            #endif
        }
    }

    /// Under the lock, as the number may belong to another file once it is closed.
    private func shutDown(_ direction: CInt) {
        state.withLock { state in
            if state.isOpen { shutdown(descriptor, direction) }
        }
    }
}
