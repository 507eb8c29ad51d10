import Dispatch
import Glibc
import Locking
import TransferCore
import TransportSupport

/// A relay between a client and a server. The relay can delay bytes and break connections.
final class CuttingRelay: Sendable {
    private struct State {
        /// The pending breaks, each as a number of bytes from the client. The first connection that reaches the first number breaks, and
        /// the number is then removed.
        var cuts: [Int] = []
        /// For each direction, the number of bytes that all connections together may still pass before a break. The connection that passes
        /// the last byte breaks.
        var remaining: [Direction: Int] = [:]
        /// The open descriptors. A descriptor is removed from this set before it is closed, because its number may be reused immediately.
        var connections: Set<CInt> = []
        var isListenerOpen = true
        var accepted = 0
        var target: UInt16
        /// The treatment of new connections after a number in `remaining` has run out and all connections have broken. If nil, only the connection
        /// that passes the last byte breaks.
        var treatment: Treatment?
    }

    enum Direction {
        case fromClient
        case fromServer
    }

    /// The treatment of new connections after all existing connections have broken.
    enum Treatment {
        /// New connections are refused.
        case refused
        /// New connections are relayed to another port.
        case redirected(to: UInt16)
    }

    struct CannotListen: Error {}

    let port: UInt16
    /// The delay of each byte, in either direction.
    private let delay: DispatchTimeInterval?
    private let listener: CInt
    private let state: Locked<State>

    init(to target: Int, delay: DispatchTimeInterval? = nil) throws {
        state = Locked(State(target: UInt16(target)))
        self.delay = delay
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(listener, address, size) == 0 && listen(listener, 64) == 0 && getsockname(listener, address, &size) == 0
            }
        }
        guard isListening else { throw CannotListen() }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        let relay = self
        try startThread { relay.accept() }
    }

    /// Breaks the next connection that passes `bytes` bytes from the client.
    func cut(afterBytes bytes: Int) {
        state.withLock { $0.cuts.append(bytes) }
    }

    /// After all connections together have passed `bytes` more bytes in a direction, breaks the connection that passed the last byte. With a
    /// treatment, breaks all connections instead, and applies the treatment to new connections.
    func cut(_ direction: Direction, inAllAfter bytes: Int, then treatment: Treatment? = nil) {
        state.withLock { state in
            state.remaining[direction] = bytes
            state.treatment = treatment
        }
    }

    /// Breaks all connections, and refuses new ones or directs them to another port.
    func breakAll(then treatment: Treatment) {
        state.withLock { breakAll(then: treatment, &$0) }
    }

    private func breakAll(then treatment: Treatment, _ state: inout State) {
        switch treatment {
        case .refused: if state.isListenerOpen { shutdown(listener, CInt(SHUT_RDWR)) }
        case .redirected(let target): state.target = target
        }
        for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
    }

    /// The number of accepted connections.
    var connectionCount: Int { state.withLock { $0.accepted } }

    /// Whether all breaks that ``cut(afterBytes:)`` requested have happened.
    var hasCutAll: Bool { state.withLock { $0.cuts.isEmpty } }

    func stop() {
        state.withLock { state in
            if state.isListenerOpen { shutdown(listener, CInt(SHUT_RDWR)) }
            for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
        }
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { break }
            let server = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
            let target = state.withLock { $0.target }
            var address = sockaddr_in.loopback(target)
            let isConnected = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            guard isConnected else {
                close(client)
                close(server)
                continue
            }
            let isAdmitted = state.withLock { state in
                guard state.target == target else { return false }
                state.connections.formUnion([client, server])
                state.accepted += 1
                return true
            }
            guard isAdmitted else {
                close(client)
                close(server)
                continue
            }
            let ends = Locked(2)
            for (source, sink, isUpstream) in [(client, server, true), (server, client, false)] {
                try? startThread { [self] in
                    pass(from: source, to: sink, isUpstream: isUpstream)
                    shutdown(client, CInt(SHUT_RDWR))
                    shutdown(server, CInt(SHUT_RDWR))
                    let isLast = ends.withLock { ends in
                        ends -= 1
                        return ends == 0
                    }
                    guard isLast else { return }
                    state.withLock { $0.connections.subtract([client, server]) }
                    close(client)
                    close(server)
                }
            }
        }
        state.withLock { $0.isListenerOpen = false }
        close(listener)
    }

    private func pass(from source: CInt, to sink: CInt, isUpstream: Bool) {
        var passed = 0
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        let oneWay = OneWay(to: sink, delay: delay)
        defer { oneWay.finish() }
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(source, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { return }
            let (allowed, isCut) = state.withLock { state -> (Int, Bool) in
                let direction = isUpstream ? Direction.fromClient : .fromServer
                if let remaining = state.remaining[direction] {
                    state.remaining[direction] = remaining > count ? remaining - count : nil
                    if remaining <= count {
                        if let treatment = state.treatment { breakAll(then: treatment, &state) }
                        return (remaining, true)
                    }
                }
                guard isUpstream, let cut = state.cuts.first, passed + count >= cut else { return (count, false) }
                state.cuts.removeFirst()
                return (max(0, cut - passed), true)
            }
            guard oneWay.send(buffer.prefix(allowed)) else { return }
            passed += allowed
            if isCut { return }
        }
    }
}

/// One direction of a relayed connection.
private final class OneWay {
    private let sink: CInt
    private let delay: DispatchTimeInterval?
    private let isBroken = Locked(false)
    private let delayedBytes = Locked<[ArraySlice<UInt8>]>([])
    private let queue = DispatchQueue(label: "relay")
    private let group = DispatchGroup()

    init(to sink: CInt, delay: DispatchTimeInterval?) {
        self.sink = sink
        self.delay = delay
    }

    /// - Returns: Whether the other end still accepts bytes.
    func send(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let delay else { return Self.write(bytes, to: sink) }
        delayedBytes.withLock { $0.append(bytes) }
        group.enter()
        queue.asyncAfter(deadline: .now() + delay) { [sink, delayedBytes, isBroken, group] in
            defer { group.leave() }
            // Timers may fire out of order, but the bytes must be sent in order.
            let next = delayedBytes.withLock { $0.removeFirst() }
            if !Self.write(next, to: sink) { isBroken.withLock { $0 = true } }
        }
        return !isBroken.withLock { $0 }
    }

    /// Waits until all bytes are sent.
    func finish() { group.wait() }

    private static func write(_ bytes: ArraySlice<UInt8>, to sink: CInt) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let result = unsafe rest.withUnsafeBytes { unsafe Glibc.send(sink, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            guard result > 0 else { return false }
            rest = rest.dropFirst(result)
        }
        return true
    }
}

extension sockaddr_in {
    fileprivate static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        return address
    }
}
