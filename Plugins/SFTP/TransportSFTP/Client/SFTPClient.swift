import Locking
package import TransferCore

/// One SFTP conversation: requests of any number of files at once, over one channel that somebody else moves the bytes of.
///
/// The mover calls ``receive(_:)``, ``bytesToSend()`` and ``end(_:)`` from a thread of its own; requests come from any thread. The server may
/// answer in any order.
package final class SFTPClient: Sendable {
    typealias Completion = @Sendable (Result<Answer, TransferError>) -> Void

    private struct Waiting {
        /// Nil when nobody waits for it any more.
        var completion: Completion?
        /// Whether the answer names something that has to be closed.
        var opens: Bool
        /// Called when the packet is handed over to be sent.
        var taken: (@Sendable () -> Void)?
    }

    private enum Phase {
        case starting
        /// The server was asked for its limits.
        case asking(ServerFeatures)
        case ready(ServerFeatures)
        case ended(TransferError)
    }

    private struct State {
        var phase = Phase.starting
        var assembler = PacketAssembler()
        var outgoing: [(id: UInt32?, packet: [UInt8])] = [(nil, Request.initialize)]
        /// How many of the outgoing packets were handed over.
        var handedOver = 0
        var lastID: UInt32 = 0
        var waiting: [UInt32: Waiting] = [:]
        /// When something came last, or the first of the unanswered requests was made.
        var quietSince = ContinuousClock.now
        var starting: [@Sendable (Result<ServerFeatures, TransferError>) -> Void] = []
    }

    /// What is on its way to the server, and what is not yet confirmed: 2 MiB, as the window of OpenSSH's server is no larger.
    let uploads = RequestWindow(bytes: 4 << 20, requests: 128, pace: RequestPace())
    /// What was asked for, and is not yet on the disk.
    let downloads = RequestWindow(bytes: 4 << 20, requests: 128, pace: RequestPace())

    /// The permissions that the server gives to new files.
    let newFileModes = NewFileModes()

    /// How many bytes of content are on their way, in either direction.
    var contentUnderway: Int { uploads.underway + downloads.underway }

    /// For messages, such as `sftp.example.com`.
    package let serverName: String
    private let state = Locked(State())
    private let wake: @Sendable () -> Void
    private let giveUp: @Sendable (TransferError) -> Void

    /// - Parameters:
    ///   - wake: Called from any thread when there is something to send.
    ///   - giveUp: Called when the server breaks the protocol: nothing more can be understood, and the connection is of no use.
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
            // Copied before the lock is taken, as no pointer may go there.
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

    /// The next bytes for the server; empty if there are none now. Called by the mover on its thread, one call at a time: first when the
    /// channel is open, then when the bytes before were sent, and after each wake-up.
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

    /// So many bytes fit into one packet of SSH.
    private static let pieceSize = 32_700

    /// Ends all requests: there is no channel any more. Called by the mover, once.
    ///
    /// - Parameter error: Why; nil if this side closed it.
    package func end(_ error: TransferError?) {
        let error =
            error
            ?? TransferError(.transient, .connectionLost, "The SFTP session with \(serverName) was closed before all was answered.")
        let (waiting, starting) = state.withLock { state -> ([Waiting], [@Sendable (Result<ServerFeatures, TransferError>) -> Void]) in
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
                "What \(serverName) sends is not SFTP; a start file of the account's shell may print something there.",
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
                throw ProtocolFault("The server answers a request that nobody made.")
            }
            if let completion = request.completion {
                completion(.success(answer))
            } else if request.opens, case .handle(let handle) = answer {
                submit(.close(handle)) { _ in }
            }
        }
    }

    // MARK: The beginning

    private func begin(_ features: ServerFeatures) throws(ProtocolFault) {
        let isFirst = state.withLock { state in
            guard case .starting = state.phase else { return false }
            state.phase = .asking(features)
            return true
        }
        guard isFirst else { throw ProtocolFault("The server tells its version a second time.") }
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

    private func become(_ features: ServerFeatures) {
        let starting = state.withLock { state in
            if case .asking = state.phase { state.phase = .ready(features) }
            defer { state.starting = [] }
            return state.starting
        }
        for call in starting { call(.success(features)) }
    }

    /// Calls back once the server told what it can do; at once if it has.
    func whenReady(_ call: @escaping @Sendable (Result<ServerFeatures, TransferError>) -> Void) {
        let result = state.withLock { state -> Result<ServerFeatures, TransferError>? in
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

    /// Whether the server told what it can do, and requests can still be made.
    var isReady: Bool {
        state.withLock { state in
            if case .ready = state.phase { true } else { false }
        }
    }

    /// Whether requests can still be made.
    package var isOpen: Bool {
        state.withLock { state in
            if case .ended = state.phase { false } else { true }
        }
    }

    /// Since when the server says nothing although it was asked, also if nobody waits for the answers any more; nil if all is answered.
    var unansweredSince: ContinuousClock.Instant? {
        state.withLock { $0.waiting.isEmpty ? nil : $0.quietSince }
    }

    // MARK: The requests' side

    /// Makes a request; never blocks.
    ///
    /// - Parameters:
    ///   - taken: Called, on the mover's thread, when the request is handed over to be sent.
    ///   - completion: Called once, on the mover's thread or, if there is no channel any more, at once.
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

    /// Takes no interest any more in an answer. What it opens is closed when it comes.
    func forget(_ id: UInt32) {
        state.withLock { $0.waiting[id]?.completion = nil }
    }
}
