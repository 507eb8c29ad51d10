import Locking
package import Logging
package import TransferCore

/// The client side of one SFTP session. It encodes requests for any number of files and decodes the responses.
///
/// The client does no input or output. Another object, called the mover here, transfers its bytes over one channel. The mover calls
/// ``receive(_:)``, ``bytesToSend()`` and ``end(_:)`` on its own thread. For SSH, the mover is the thread of the connection. Any thread can
/// make requests. The server may respond in any order.
package final class SFTPClient: Sendable {
    typealias Completion = @Sendable (Result<SFTPResponse, TransferError>) -> Void

    private struct SubmittedRequest {
        /// Called with the response; nil if no task waits for it.
        var completion: Completion?
        /// Whether a successful response contains a handle that must be closed.
        var opens: Bool
        /// Called when the mover fetches the packet to send it.
        var onHandover: (@Sendable () -> Void)?
    }

    private enum Phase {
        case starting
        /// The client has requested the server's limits.
        case requestingLimits(SFTPFeatures)
        case ready(SFTPFeatures)
        case ended(TransferError)
    }

    private struct State {
        var phase = Phase.starting
        var assembler = PacketAssembler()
        var outgoing: [(id: UInt32?, packet: [UInt8])] = [(nil, Request.initialize)]
        /// The number of `outgoing` packets that the mover has fetched.
        var handedOverCount = 0
        var lastID: UInt32 = 0
        var unanswered: [UInt32: SubmittedRequest] = [:]
        /// The start of the server's current silence: the last arrival of bytes, or the first unanswered request if that request is later.
        var quietSince = ContinuousClock.now
        /// Called when the server has reported its features, or the session has ended.
        var readyCallbacks: [@Sendable (Result<SFTPFeatures, TransferError>) -> Void] = []
    }

    /// The window for uploaded bytes that the server has not confirmed.
    let uploads = RequestWindow(bytes: 4 << 20, requests: 128, pace: RequestPace())
    /// The window for requested bytes that have not arrived.
    let downloads = RequestWindow(bytes: 4 << 20, requests: 128, pace: RequestPace())

    /// The permissions that the server gives to new files.
    let newFileModes = NewFileModes()

    /// The number of content bytes in flight, in both directions.
    var contentInFlight: Int { uploads.inFlight + downloads.inFlight }

    /// The name of the server as shown in messages, such as `sftp.example.com`.
    package let serverName: String
    private let state = Locked(State())
    private let logger: Logger?
    private let wake: @Sendable () -> Void
    private let giveUp: @Sendable (TransferError) -> Void

    /// - Parameters:
    ///   - logger: Logs each request with the level debug, except requests for content.
    ///   - wake: Called from any thread when there are bytes to send.
    ///   - giveUp: Called when the server violates the protocol or has an unsupported version. The SFTP session has then ended, so close
    ///     its channel.
    package init(
        serverName: String, logger: Logger? = nil, wake: @escaping @Sendable () -> Void,
        giveUp: @escaping @Sendable (TransferError) -> Void = { _ in }
    ) {
        self.serverName = serverName
        self.logger = logger
        self.wake = wake
        self.giveUp = giveUp
    }

    // MARK: For the mover

    /// Called by the mover on its thread, in order.
    package func receive(_ bytes: UnsafeRawBufferPointer) {
        do throws(ProtocolFault) {
            // A pointer can't be passed to the closure.
            let arrived = unsafe [UInt8](bytes)
            state.withLock { state in
                state.assembler.append(arrived)
                state.quietSince = .now
            }
            while let packet = try nextPacket() { try process(packet) }
        } catch {
            fail(error)
        }
    }

    /// Returns the next bytes for the server, or an empty array if no bytes are ready.
    ///
    /// The mover calls this method on its thread: when the channel is open, after the previous bytes were sent, and after each wake-up.
    package func bytesToSend() -> [UInt8] {
        let (bytes, callbacks) = state.withLock { state -> ([UInt8], [@Sendable () -> Void]) in
            var bytes: [UInt8] = []
            var callbacks: [@Sendable () -> Void] = []
            while state.handedOverCount < state.outgoing.count {
                let (id, packet) = state.outgoing[state.handedOverCount]
                guard bytes.isEmpty || bytes.count + packet.count <= Self.batchSize else { break }
                bytes = bytes.isEmpty ? packet : bytes + packet
                state.outgoing[state.handedOverCount].packet = []
                state.handedOverCount += 1
                if let id, let call = state.unanswered[id]?.onHandover { callbacks.append(call) }
            }
            if state.handedOverCount == state.outgoing.count || state.handedOverCount >= 256 {
                state.outgoing.removeFirst(state.handedOverCount)
                state.handedOverCount = 0
            }
            return (bytes, callbacks)
        }
        for call in callbacks { call() }
        return bytes
    }

    /// The maximum number of bytes that ``bytesToSend()`` returns, unless a single packet is larger. This many bytes fit into one SSH
    /// packet.
    private static let batchSize = 32_700

    /// Ends the session and fails all requests. The mover calls this method when the channel has ended, and the connection pool calls it
    /// when the server has stopped responding.
    ///
    /// - Parameter error: The reason; nil if the client closed the channel.
    package func end(_ error: TransferError?) {
        let error =
            error
            ?? TransferError(
                .transient, .connectionLost, "The SFTP session with \(serverName) was closed before all responses arrived.")
        let (unanswered, readyCallbacks) = state.withLock {
            state -> ([SubmittedRequest], [@Sendable (Result<SFTPFeatures, TransferError>) -> Void]) in
            if case .ended = state.phase { return ([], []) }
            state.phase = .ended(error)
            defer {
                state.unanswered = [:]
                state.readyCallbacks = []
                state.outgoing = []
                state.handedOverCount = 0
            }
            return (Array(state.unanswered.values), state.readyCallbacks)
        }
        uploads.end(error)
        downloads.end(error)
        for request in unanswered { request.completion?(.failure(error)) }
        for call in readyCallbacks { call(.failure(error)) }
    }

    private func fail(_ fault: ProtocolFault) {
        let isNew = state.withLock { state in
            if case .starting = state.phase { true } else { false }
        }
        let error =
            isNew
            ? TransferError(
                .unreachable, .notThisProtocol,
                "\(serverName) does not send SFTP. A startup file of the account's shell may print text.",
                cause: fault.description)
            : TransferError(.protocolViolation, .invalidResponse, "\(serverName): \(fault.description)")
        end(error)
        giveUp(error)
    }

    private func nextPacket() throws(ProtocolFault) -> ServerPacket? {
        try state.withLock { state throws(ProtocolFault) in
            if case .ended = state.phase { return nil }
            return try state.assembler.next().map { packet throws(ProtocolFault) in try ServerPacket(packet) }
        }
    }

    private func process(_ packet: ServerPacket) throws(ProtocolFault) {
        switch packet {
        case .version(let features): try begin(features)
        case .response(let id, let response):
            guard let request = state.withLock({ $0.unanswered.removeValue(forKey: id) }) else {
                throw ProtocolFault("The server sent a response with an unknown request ID.")
            }
            if let completion = request.completion {
                completion(.success(response))
            } else if request.opens, case .handle(let handle) = response {
                submit(.close(handle)) { _ in }
            }
        }
    }

    // MARK: Start

    private func begin(_ features: SFTPFeatures) throws(ProtocolFault) {
        let isFirst = state.withLock { state in
            guard case .starting = state.phase else { return false }
            state.phase = .requestingLimits(features)
            return true
        }
        guard isFirst else { throw ProtocolFault("The server sent its version twice.") }
        guard features.version >= 3 else {
            let error = TransferError(
                .unreachable, .unsupportedVersion, "\(serverName) supports SFTP version \(features.version); version 3 is required.")
            end(error)
            giveUp(error)
            return
        }
        guard features.offers(.limits) else { return becomeReady(features) }
        submit(.limits) { [weak self] result in
            guard case .success(let response) = result else { return }
            var features = features
            if case .extended(let data) = response, let limits = try? ServerLimits(data) { features.apply(limits) }
            self?.becomeReady(features)
        }
    }

    private func becomeReady(_ features: SFTPFeatures) {
        let readyCallbacks = state.withLock { state in
            if case .requestingLimits = state.phase { state.phase = .ready(features) }
            defer { state.readyCallbacks = [] }
            return state.readyCallbacks
        }
        for call in readyCallbacks { call(.success(features)) }
    }

    /// Calls the closure when the server has reported its features, or the session has ended; immediately if either has already happened.
    func whenReady(_ call: @escaping @Sendable (Result<SFTPFeatures, TransferError>) -> Void) {
        let result = state.withLock { state -> Result<SFTPFeatures, TransferError>? in
            switch state.phase {
            case .ready(let features): return .success(features)
            case .ended(let error): return .failure(error)
            case .starting, .requestingLimits:
                state.readyCallbacks.append(call)
                return nil
            }
        }
        if let result { call(result) }
    }

    /// Whether the session has not ended.
    package var isOpen: Bool {
        state.withLock { state in
            if case .ended = state.phase { false } else { true }
        }
    }

    /// Like `quietSince`; nil if all requests are answered. Abandoned requests stay unanswered until the server responds.
    var unansweredSince: ContinuousClock.Instant? {
        state.withLock { $0.unanswered.isEmpty ? nil : $0.quietSince }
    }

    // MARK: For requests

    /// Sends a request. Never blocks.
    ///
    /// - Parameters:
    ///   - onHandover: Called on the mover's thread when the mover fetches the request's packet to send it.
    ///   - completion: Called once: with the response, on the mover's thread, or with the error that ended the session. Called
    ///     immediately if the session has already ended. Not called after ``forget(_:)``.
    /// - Returns: The ID of the request, for ``forget(_:)``.
    @discardableResult
    func submit(_ request: Request, onHandover: (@Sendable () -> Void)? = nil, completion: @escaping Completion) -> UInt32 {
        let completion = logging(request, completion)
        let opens =
            switch request {
            case .open, .opendir: true
            default: false
            }
        let (id, failure) = state.withLock { state -> (UInt32, TransferError?) in
            if case .ended(let error) = state.phase { return (0, error) }
            if state.unanswered.isEmpty { state.quietSince = .now }
            repeat { state.lastID &+= 1 } while state.unanswered[state.lastID] != nil
            state.unanswered[state.lastID] = SubmittedRequest(completion: completion, opens: opens, onHandover: onHandover)
            state.outgoing.append((state.lastID, request.encoded(id: state.lastID)))
            return (state.lastID, nil)
        }
        if let failure { completion(.failure(failure)) } else { wake() }
        return id
    }

    private func logging(_ request: Request, _ completion: @escaping Completion) -> Completion {
        guard let logger, logger.logLevel <= .debug, !request.isForContent else { return completion }
        let start = ContinuousClock.now
        return { [serverName] result in
            // Omits the path, like the log of HTTP requests.
            logger.debug(
                "\(request.name) \(serverName)", metadata: ["status": "\(result.logged)", "latency": "\(ContinuousClock.now - start)"])
            completion(result)
        }
    }

    /// Ignores the later response to a request. If the response contains a handle, the client closes the handle.
    func forget(_ id: UInt32) {
        state.withLock { $0.unanswered[id]?.completion = nil }
    }
}

extension Result<SFTPResponse, TransferError> {
    fileprivate var logged: String {
        switch self {
        case .success(.status(let status)): "\(status.code.rawValue)"
        case .success: "0"
        case .failure(let error): error.code.rawValue
        }
    }
}
