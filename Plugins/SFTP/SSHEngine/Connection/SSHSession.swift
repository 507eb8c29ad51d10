import CSSH2
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A libssh2 session and its socket. Used only by the connection's thread, because the library stores the state of an unfinished call in the session.
@safe final class SSHSession {
    let pointer: OpaquePointer
    let socket: CInt
    let server: String
    let traffic = SocketTraffic()
    private let mailbox: ConnectionMailbox

    /// libssh2_init(3) must run before any thread uses the library, so each session reads this property first.
    private static let isLibraryReady = libssh2_init(0) == 0

    static let libraryVersion = unsafe libssh2_version(0).map { unsafe String(cString: $0) } ?? ""

    /// Versions 1.11 and later support RSA keys with SHA-2, which servers require (RFC 8332).
    static let hasModernRSA = unsafe libssh2_version(0x010B00) != nil

    /// Creates a session. Takes ownership of a connected, non-blocking socket, even if it throws.
    ///
    /// - Throws: A `TransferError` of the class `noSpace` if libssh2 can't allocate memory.
    init(socket: CInt, server: String, mailbox: ConnectionMailbox) throws(TransferError) {
        guard Self.isLibraryReady,
            let pointer = unsafe libssh2_session_init_ex(nil, nil, nil, Unmanaged.passUnretained(traffic).toOpaque())
        else {
            close(socket)
            throw TransferError(.noSpace, .internalFailure, "Cannot set up libssh2: this machine is out of memory.")
        }
        unsafe self.pointer = pointer
        self.socket = socket
        self.server = server
        self.mailbox = mailbox
        unsafe libssh2_session_set_blocking(pointer, 0)
        unsafe cssh2_set_callbacks(
            pointer,
            { socket, buffer, length, flags, context in
                unsafe SocketTraffic.from(context)?.receive(socket, buffer, length, flags) ?? Int(-EIO)
            },
            { socket, buffer, length, flags, context in
                unsafe SocketTraffic.from(context)?.send(socket, buffer, length, flags) ?? Int(-EIO)
            },
            { _, _, message, length, _, _, context in
                guard let message = unsafe message, length > 0 else { return }
                let text = unsafe UnsafeRawBufferPointer(start: message, count: min(Int(length), 256))
                unsafe SocketTraffic.from(context)?.disconnectReason = unsafe printable(text)
            })
    }

    /// Frees the session and closes the socket without sending. Call ``disconnect()`` first to notify the server.
    func end() {
        shutdown(socket, CInt(SHUT_RDWR))
        // A shut-down socket never blocks calls. The limit on repetitions guards against bugs in the library; at the limit, memory leaks.
        for _ in 0..<1000 where unsafe libssh2_session_free(pointer) != LIBSSH2_ERROR_EAGAIN { break }
        close(socket)
    }

    /// Sends a disconnect message to the server, if the socket accepts it immediately.
    func disconnect() {
        unsafe libssh2_session_disconnect_ex(pointer, CInt(SSH_DISCONNECT_BY_APPLICATION), "closed", "")
    }

    // MARK: Waiting

    /// Whether a packet is partly sent. Also true if libssh2 reports no direction, because a packet may then be partly sent. If true, the
    /// call that returned EAGAIN must be repeated with the same bytes before any other call.
    var hasPartialPacket: Bool { directions & CInt(LIBSSH2_SESSION_BLOCK_OUTBOUND) != 0 || directions == 0 }

    /// The events to wait for after EAGAIN, and the maximum time to wait; nil for no maximum.
    var awaited: (events: Int32, atMost: Duration?) {
        switch directions {
        // libssh2 1.11.1 sometimes reports no direction although it waits for one, so repeat the call soon.
        case 0: (Int32(POLLIN | POLLOUT), .milliseconds(20))
        case CInt(LIBSSH2_SESSION_BLOCK_INBOUND): (Int32(POLLIN), nil)
        // While a packet is partly sent, the library may leave received bytes unread. Waiting for POLLIN would then return immediately.
        default: (Int32(POLLOUT), nil)
        }
    }

    private var directions: CInt { unsafe libssh2_session_block_directions(pointer) }

    /// Repeats a call of libssh2 while it returns EAGAIN.
    ///
    /// - Throws: The deadline's error after the deadline, or `CancellationError` if the connection must stop.
    func complete(by deadline: Deadline, _ call: () -> CInt) throws -> CInt {
        traffic.deadline = deadline.time
        defer { traffic.deadline = nil }
        while true {
            let result = call()
            guard result == LIBSSH2_ERROR_EAGAIN else { return result }
            try wait(by: deadline)
        }
    }

    private func wait(by deadline: Deadline) throws {
        let (events, limit) = awaited
        try mailbox.wait(for: events, on: socket, by: deadline, atMost: limit)
    }

    var lastError: (code: CInt, text: String) {
        var text: UnsafeMutablePointer<CChar>?
        let code = unsafe libssh2_session_last_error(pointer, &text, nil, 0)
        return (code, unsafe text.map { unsafe String(cString: $0) } ?? "")
    }
}

/// Returns text from another program without characters that control a terminal, break lines or change the writing direction.
package func printable(_ bytes: some Sequence<UInt8>) -> String {
    let scalars = String(decoding: Array(bytes), as: UTF8.self).unicodeScalars.map { scalar in
        switch scalar.value {
        case 0x00...0x1F, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: " " as Character
        default: Character(scalar)
        }
    }
    return String(scalars).split(separator: " ").joined(separator: " ")
}
