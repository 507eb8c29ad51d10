import Locking
package import TransferCore

/// One SFTP conversation: requests of any number of files, over one channel whose bytes another object moves.
///
/// The mover calls ``receive(_:)``, ``bytesToSend()`` and ``end(_:)`` from its own thread; requests come from any thread. The server can
/// answer in any order.
package final class SFTPClient: Sendable {
    typealias Completion = @Sendable (Result<Response, TransferError>) -> Void

    private struct Waiting {
        /// Nil when no task waits any longer.
        var completion: Completion?
        /// Whether the response names a handle that must be closed.
        var opens: Bool
        /// Called when the packet is passed on to be sent.
        var taken: (@Sendable () -> Void)?
    }

    private enum Phase {
        case starting
        /// The server was asked for its limits.
        case asking(SFTPFeatures)
        case ready(SFTPFeatures)
        case ended(TransferError)
    }

    private struct State {
        var phase = Phase.starting
        var assembler = PacketAssembler()
        var outgoing: [(id: UInt32?, packet: [UInt8])] = [(nil, Request.initialize)]
        /// The number of outgoing packets that were passed on.
        var handedOver = 0
        var lastID: UInt32 = 0
        var waiting: [UInt32: Waiting] = [:]
        /// When bytes last arrived, or the first of the unanswered requests was made.
        var quietSince = ContinuousClock.now
        var starting: [@Sendable (Result<SFTPFeatures, TransferError>) -> Void] = []
    }

    /// Uploaded bytes in flight or unconfirmed.
    let uploads = RequestWindow(bytes: 4 << 20, requests: 128, pace: RequestPace())
    /// Requested bytes that are not yet on the disk.
    let downloads = RequestWindow(bytes: 4 << 20, requests: 128, pace: RequestPace())

    /// The permissions that the server gives to new files.
    let newFileModes = NewFileModes()

    /// The number of content bytes in flight, in both directions.
    var contentUnderway: Int { uploads.underway + downloads.underway }

    /// For messages, such as `sftp.example.com`.
    package let serverName: String
    private let state = Locked(State())
    private let wake: @Sendable () -> Void
    private let giveUp: @Sendable (TransferError) -> Void

    /// - Parameters:
    ///   - wake: Called from any thread when there are bytes to send.
    ///   - giveUp: Called when the server breaks the protocol: no later packet can be decoded, and the connection is useless.
    package init(
        serverName: String, wake: @escaping @Sendable () -> Void, giveUp: @escaping @Sendable (TransferError) -> Void = { _ in }
    ) {
        self.serverName = serverName
        self.wake = wake
        self.giveUp = giveUp
    }

    // MARK: The mover's side

    /// Takes bytes from the server. Called by the mover on its thread, in order.
    package func receive(_ bytes: UnsafeRawBufferPointer) {
        do throws(ProtocolFault) {
            // Copied before the lock is taken, which no pointer may enter.
            let arrived = unsafe [UInt8](bytes)
            state.withLock { state in
                state.assembler.append(arrived)
                state.quietSince = .now
            }
            while let packet = try nextPacket() { try take(packet) }
        } catch {
            fail(error)
        }
    }

    /// The next bytes for the server; empty if there are none now. Called by the mover on its thread, one call at a time: when the channel
    /// is open, when the previous bytes were sent, and after each wake-up.
    package func bytesToSend() -> [UInt8] {
        let (bytes, taken) = state.withLock { state -> ([UInt8], [@Sendable () -> Void]) in
            var bytes: [UInt8] = []
            var taken: [@Sendable () -> Void] = []
            while state.handedOver < state.outgoing.count {
                let (id, packet) = state.outgoing[state.handedOver]
                guard bytes.isEmpty || bytes.count + packet.count <= Self.pieceSize else { break }
                bytes = bytes.isEmpty ? packet : bytes + packet
                state.outgoing[state.handedOver].packet = []
                state.handedOver += 1
                if let id, let call = state.waiting[id]?.taken { taken.append(call) }
            }
            if state.handedOver == state.outgoing.count || state.handedOver >= 256 {
                state.outgoing.removeFirst(state.handedOver)
                state.handedOver = 0
            }
            return (bytes, taken)
        }
        for call in taken { call() }
        return bytes
    }

    /// This many bytes fit into one SSH packet.
    private static let pieceSize = 32_700

    /// Ends all requests, because the channel has ended. Called by the mover, once.
    ///
    /// - Parameter error: The reason; nil if this side closed the channel.
    package func end(_ error: TransferError?) {
        let error =
            error
            ?? TransferError(
                .transient, .connectionLost, "The SFTP session with \(serverName) was closed before all requests were answered.")
        let (waiting, starting) = state.withLock { state -> ([Waiting], [@Sendable (Result<SFTPFeatures, TransferError>) -> Void]) in
            if case .ended = state.phase { return ([], []) }
            state.phase = .ended(error)
            defer {
                state.waiting = [:]
                state.starting = []
                state.outgoing = []
                state.handedOver = 0
            }
            return (Array(state.waiting.values), state.starting)
        }
        uploads.end(error)
        downloads.end(error)
        for request in waiting { request.completion?(.failure(error)) }
        for call in starting { call(.failure(error)) }
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
            : TransferError(.protocolViolation, .badAnswer, "\(serverName): \(fault.description)")
        end(error)
        giveUp(error)
    }

    private func nextPacket() throws(ProtocolFault) -> ServerPacket? {
        try state.withLock { state throws(ProtocolFault) in
            if case .ended = state.phase { return nil }
            return try state.assembler.next().map { packet throws(ProtocolFault) in try ServerPacket(packet) }
        }
    }

    private func take(_ packet: ServerPacket) throws(ProtocolFault) {
        switch packet {
        case .version(let features): try begin(features)
        case .answer(let id, let answer):
            guard let request = state.withLock({ $0.waiting.removeValue(forKey: id) }) else {
                throw ProtocolFault("The server answered a request that was not made.")
            }
            if let completion = request.completion {
                completion(.success(answer))
            } else if request.opens, case .handle(let handle) = answer {
                submit(.close(handle)) { _ in }
            }
        }
    }

    // MARK: The beginning

    private func begin(_ features: SFTPFeatures) throws(ProtocolFault) {
        let isFirst = state.withLock { state in
            guard case .starting = state.phase else { return false }
            state.phase = .asking(features)
            return true
        }
        guard isFirst else { throw ProtocolFault("The server sent its version twice.") }
        guard features.version >= 3 else {
            let error = TransferError(
                .unreachable, .unsupportedVersion, "\(serverName) speaks version \(features.version) of SFTP; version 3 is needed.")
            end(error)
            giveUp(error)
            return
        }
        guard features.offers(.limits) else { return become(features) }
        submit(.limits) { [weak self] result in
            guard case .success(let answer) = result else { return }
            var features = features
            if case .extended(let reply) = answer, let limits = try? ServerLimits(reply) { features.note(limits) }
            self?.become(features)
        }
    }

    private func become(_ features: SFTPFeatures) {
        let starting = state.withLock { state in
            if case .asking = state.phase { state.phase = .ready(features) }
            defer { state.starting = [] }
            return state.starting
        }
        for call in starting { call(.success(features)) }
    }

    /// Calls back when the server has reported its features; at once if it has.
    func whenReady(_ call: @escaping @Sendable (Result<SFTPFeatures, TransferError>) -> Void) {
        let result = state.withLock { state -> Result<SFTPFeatures, TransferError>? in
            switch state.phase {
            case .ready(let features): return .success(features)
            case .ended(let error): return .failure(error)
            case .starting, .asking:
                state.starting.append(call)
                return nil
            }
        }
        if let result { call(result) }
    }

    /// Whether the server has reported its features, and requests can be made.
    var isReady: Bool {
        state.withLock { state in
            if case .ready = state.phase { true } else { false }
        }
    }

    /// Whether requests can be made.
    package var isOpen: Bool {
        state.withLock { state in
            if case .ended = state.phase { false } else { true }
        }
    }

    /// The time since which the server has answered no open request, including abandoned ones; nil if all are answered.
    var unansweredSince: ContinuousClock.Instant? {
        state.withLock { $0.waiting.isEmpty ? nil : $0.quietSince }
    }

    // MARK: The requests' side

    /// Sends a request. Never blocks.
    ///
    /// - Parameters:
    ///   - taken: Called on the mover's thread when the request is passed on to be sent.
    ///   - completion: Called once, on the mover's thread or, without a channel, at once.
    /// - Returns: Its number, for ``forget(_:)``.
    @discardableResult
    func submit(_ request: Request, taken: (@Sendable () -> Void)? = nil, completion: @escaping Completion) -> UInt32 {
        let opens =
            switch request {
            case .open, .opendir: true
            default: false
            }
        let (id, failure) = state.withLock { state -> (UInt32, TransferError?) in
            if case .ended(let error) = state.phase { return (0, error) }
            if state.waiting.isEmpty { state.quietSince = .now }
            repeat { state.lastID &+= 1 } while state.waiting[state.lastID] != nil
            state.waiting[state.lastID] = Waiting(completion: completion, opens: opens, taken: taken)
            state.outgoing.append((state.lastID, request.encoded(id: state.lastID)))
            return (state.lastID, nil)
        }
        if let failure { completion(.failure(failure)) } else { wake() }
        return id
    }

    /// Abandons a response. A handle that it opens is closed when it arrives.
    func forget(_ id: UInt32) {
        state.withLock { $0.waiting[id]?.completion = nil }
    }
}
