import CSSH2
import TransferCore
import TransportSupport

/// Runs one channel on the connection's thread: opens it, transfers its bytes, and closes it. Never blocks.
@safe final class ChannelPump {
    /// The result of one call to ``advance(_:)``.
    enum Outcome {
        /// The channel can't continue until the socket is ready, or the handler has bytes to send.
        case idle
        /// The channel made progress, and may make more.
        case progressed
        /// A packet is partly sent. This channel must continue before any other.
        case stuck
        case ended
    }

    @safe private enum Phase {
        case opening
        case starting(OpaquePointer)
        case open(OpaquePointer)
        case closing(OpaquePointer)
        case freeing(OpaquePointer)
    }

    /// The library call to repeat because its packet is partly sent.
    private enum StuckCall {
        case read
        case readError
        case write
        case endOfInput
    }

    let request: ChannelRequest
    private let session: SSHSession
    private let receiveWindow: UInt32
    private var phase = Phase.opening
    private var stuckCall: StuckCall?
    /// The bytes being sent. A repeated write must pass the same bytes at the same address to the library, so do not change them.
    private var outgoing: [UInt8] = []
    private var sentCount = 0
    private var isInputEnded = false
    private var wantsClose = false
    private var hasReportedEnd = false
    private var end = ChannelRequest.End()

    /// After this number of received bytes, a channel stops receiving in its turn, and likewise for sent bytes. So it does not delay other
    /// channels.
    private static let bytesPerTurn = 1 << 20
    /// The maximum number of bytes of the error output that the channel keeps.
    static let errorOutputLimit = 64 << 10

    init(_ request: ChannelRequest, session: SSHSession, receiveWindow: Int) {
        self.request = request
        self.session = session
        self.receiveWindow = UInt32(clamping: receiveWindow)
    }

    /// Whether the library must still open the channel.
    var isOpening: Bool {
        if case .opening = phase { true } else { false }
    }

    /// Makes later calls to ``advance(_:)`` close the channel. If a packet is partly sent, the library completes the packet first.
    func close() {
        wantsClose = true
        request.opened.resume(.failure(CancellationError()))
        endHandler(nil)
    }

    /// Makes as much progress as ``bytesPerTurn`` permits, without waiting.
    ///
    /// - Parameter buffer: A buffer for received bytes, valid for this turn.
    /// - Throws: The error that ended the whole connection.
    func advance(_ buffer: UnsafeMutableRawBufferPointer) throws(TransferError) -> Outcome {
        switch phase {
        case .opening: try openChannel()
        case .starting(let channel): unsafe try startProgram(channel)
        case .open(let channel): unsafe try pump(channel, buffer)
        case .closing(let channel): unsafe try closeChannel(channel)
        case .freeing(let channel): unsafe try freeChannel(channel)
        }
    }

    func connectionEnded(_ error: TransferError?) {
        let reason = error ?? TransferError(.transient, .connectionLost, "The connection to \(session.server) was closed.")
        if request.opened.resume(.failure(reason)) { return }
        end.error = end.error ?? reason
        endHandler(error)
        request.ended(end)
    }

    private func endHandler(_ error: TransferError?) {
        guard !hasReportedEnd else { return }
        hasReportedEnd = true
        if !isProgramPending { request.handler.end(error) }
    }

    private var isProgramPending: Bool {
        switch phase {
        case .opening, .starting: true
        case .open, .closing, .freeing: false
        }
    }

    private var outcomeOfBlockedCall: Outcome { session.hasPartialPacket ? .stuck : .idle }

    // MARK: Opening

    private func openChannel() throws(TransferError) -> Outcome {
        let type = "session"
        guard
            let channel = unsafe libssh2_channel_open_ex(
                session.pointer, type, UInt32(type.utf8.count), receiveWindow, UInt32(LIBSSH2_CHANNEL_PACKET_DEFAULT), nil, 0)
        else {
            let error = session.lastError
            if error.code == LIBSSH2_ERROR_EAGAIN { return outcomeOfBlockedCall }
            guard error.code == LIBSSH2_ERROR_CHANNEL_FAILURE else { throw session.failure(error.code) }
            request.opened.resume(
                .failure(
                    TransferError(
                        .transient, .serverError, "The server \(session.server) refused to open another channel on this connection.",
                        cause: error.text)))
            return .ended
        }
        unsafe phase = .starting(channel)
        return .progressed
    }

    private func startProgram(_ channel: OpaquePointer) throws(TransferError) -> Outcome {
        let (requestType, message): (String, [UInt8]) =
            switch request.program {
            case .subsystem(let name): ("subsystem", Array(name.utf8))
            case .command(let bytes): ("exec", bytes)
            }
        let code = unsafe message.withUnsafeBytes { message in
            unsafe libssh2_channel_process_startup(
                channel, requestType, UInt32(requestType.utf8.count), message.baseAddress?.assumingMemoryBound(to: CChar.self),
                UInt32(message.count))
        }
        switch code {
        case LIBSSH2_ERROR_EAGAIN: return outcomeOfBlockedCall
        case 0:
            if wantsClose {
                unsafe phase = .closing(channel)
            } else {
                unsafe phase = .open(channel)
                if !request.opened.resume(.success(())) {
                    // The caller was cancelled before the program started.
                    wantsClose = true
                    hasReportedEnd = true
                }
            }
        case LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED, LIBSSH2_ERROR_CHANNEL_FAILURE:
            request.opened.resume(.failure(refusal))
            hasReportedEnd = true
            unsafe phase = .freeing(channel)
        default: throw session.failure(code)
        }
        return .progressed
    }

    private var refusal: TransferError {
        switch request.program {
        case .subsystem(let name):
            TransferError(
                .unreachable, .notThisProtocol,
                "The server \(session.server) does not offer the subsystem \"\(printable(name.utf8))\" to this user.")
        case .command:
            TransferError(.unsupported, .unsupported, "The server \(session.server) does not let this user run commands.")
        }
    }

    // MARK: Bytes

    private func pump(_ channel: OpaquePointer, _ buffer: UnsafeMutableRawBufferPointer) throws(TransferError) -> Outcome {
        var hasProgressed = false
        if let call = stuckCall {
            stuckCall = nil
            switch call {
            case .read: hasProgressed = unsafe try read(channel, buffer)
            case .readError: hasProgressed = unsafe try readErrorOutput(channel, buffer)
            case .write: hasProgressed = unsafe try write(channel)
            case .endOfInput: hasProgressed = unsafe try endInput(channel)
            }
            if stuckCall != nil { return .stuck }
        }
        if wantsClose {
            unsafe phase = .closing(channel)
            return .progressed
        }
        if unsafe try read(channel, buffer) { hasProgressed = true }
        if stuckCall != nil { return .stuck }
        // Reads the error output only if bytes have arrived, because each read also makes the library read from the socket.
        if unsafe cssh2_has_data(channel, 1) != 0, unsafe try readErrorOutput(channel, buffer) { hasProgressed = true }
        if stuckCall != nil { return .stuck }
        if unsafe libssh2_channel_eof(channel) == 1 {
            serverEnded()
            unsafe phase = .closing(channel)
            return .progressed
        }
        if unsafe try write(channel) { hasProgressed = true }
        if stuckCall == nil, unsafe try endInput(channel) { hasProgressed = true }
        if stuckCall != nil { return .stuck }
        return hasProgressed ? .progressed : .idle
    }

    /// Returns whether bytes arrived.
    private func read(_ channel: OpaquePointer, _ buffer: UnsafeMutableRawBufferPointer) throws(TransferError) -> Bool {
        var total = 0
        while total < Self.bytesPerTurn {
            let count = unsafe libssh2_channel_read_ex(channel, 0, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
            guard count > 0 else {
                if count < 0 { try handleError(CInt(count), .read) }
                break
            }
            total += count
            if !hasReportedEnd { unsafe request.handler.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
        }
        return total > 0
    }

    /// Returns whether bytes arrived. Keeps only the beginning of the error output.
    private func readErrorOutput(_ channel: OpaquePointer, _ buffer: UnsafeMutableRawBufferPointer) throws(TransferError) -> Bool {
        let count = unsafe libssh2_channel_read_ex(channel, 1, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
        guard count > 0 else {
            if count < 0 { try handleError(CInt(count), .readError) }
            return false
        }
        let kept = min(count, Self.errorOutputLimit - end.errorOutput.count)
        unsafe end.errorOutput.append(contentsOf: buffer[..<kept])
        return true
    }

    /// Returns whether libssh2 accepted bytes.
    private func write(_ channel: OpaquePointer) throws(TransferError) -> Bool {
        var total = 0
        while total < Self.bytesPerTurn {
            if sentCount == outgoing.count {
                outgoing = hasReportedEnd ? [] : request.handler.bytesToSend()
                sentCount = 0
                if outgoing.isEmpty { break }
            }
            let count = unsafe outgoing.withUnsafeBytes { bytes in
                unsafe libssh2_channel_write_ex(
                    channel, 0, bytes.baseAddress?.advanced(by: sentCount).assumingMemoryBound(to: CChar.self),
                    bytes.count - sentCount)
            }
            guard count > 0 else {
                if count < 0 { try handleError(CInt(count), .write) }
                break
            }
            sentCount += count
            total += count
        }
        return total > 0
    }

    /// Ends a command's input after all of it was sent; a subsystem's input ends with the channel. Returns whether this call ended the input.
    private func endInput(_ channel: OpaquePointer) throws(TransferError) -> Bool {
        guard case .command = request.program, !isInputEnded, outgoing.isEmpty else { return false }
        let code = unsafe libssh2_channel_send_eof(channel)
        guard code == 0 else {
            try handleError(code, .endOfInput)
            return false
        }
        isInputEnded = true
        return true
    }

    /// Handles the error of a call that transferred no bytes.
    private func handleError(_ code: CInt, _ call: StuckCall) throws(TransferError) {
        switch code {
        case LIBSSH2_ERROR_EAGAIN:
            if session.hasPartialPacket { stuckCall = call }
        case LIBSSH2_ERROR_CHANNEL_CLOSED, LIBSSH2_ERROR_CHANNEL_EOF_SENT:
            // ``pump(_:_:)`` reads all preceding bytes before it ends the channel.
            break
        default: throw session.failure(code)
        }
    }

    // MARK: The end

    private func serverEnded() {
        guard case .subsystem(let name) = request.program else { return }
        let error = TransferError(
            .transient, .connectionLost,
            "The server \(session.server) ended its \(printable(name.utf8)) process, or the process exited.")
        end.error = error
        endHandler(error)
    }

    private func closeChannel(_ channel: OpaquePointer) throws(TransferError) -> Outcome {
        let code = unsafe libssh2_channel_close(channel)
        if code == LIBSSH2_ERROR_EAGAIN { return outcomeOfBlockedCall }
        if session.isLost(code) { throw session.failure(code) }
        if case .command = request.program { unsafe recordExit(channel) }
        unsafe phase = .freeing(channel)
        return .progressed
    }

    private func recordExit(_ channel: OpaquePointer) {
        var name: UnsafeMutablePointer<CChar>?
        var length = 0
        unsafe libssh2_channel_get_exit_signal(channel, &name, &length, nil, nil, nil, nil)
        if let name = unsafe name {
            end.signal = unsafe printable(UnsafeRawBufferPointer(start: name, count: min(length, 32)))
            unsafe libssh2_free(session.pointer, name)
        } else {
            end.status = unsafe libssh2_channel_get_exit_status(channel)
        }
    }

    private func freeChannel(_ channel: OpaquePointer) throws(TransferError) -> Outcome {
        let code = unsafe libssh2_channel_free(channel)
        if code == LIBSSH2_ERROR_EAGAIN { return outcomeOfBlockedCall }
        if session.isLost(code) { throw session.failure(code) }
        endHandler(end.error)
        request.ended(end)
        return .ended
    }
}
