import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A server for tests that does what a script says, request by request, right or wrong. Listens on a free port of the loopback interface.
///
/// Speaks in bytes over POSIX sockets, one thread a connection, so that no library is in the way of a bad answer.
package final class ScriptedServer: Sendable {
    /// Says what to do with a request; the number counts all requests to the server from 0.
    package typealias Script = @Sendable (_ request: ReceivedRequest, _ number: Int) -> [ServerStep]

    private struct State {
        var requests: [ReceivedRequest] = []
        /// What is open: a number leaves before it is closed, as it may be someone else's descriptor the moment after.
        var connections: Set<CInt> = []
        var isListenerOpen = true
        var connectionCount = 0
        var isStopped = false
    }

    /// The port that it listens on.
    package let port: UInt16
    private let listener: CInt
    private let script: Script
    private let state = Locked(State())

    /// Starts a server.
    package init(_ script: @escaping Script) throws {
        self.script = script
        (listener, port) = try listenOnLoopback()
        let server = self
        try startThread { server.acceptConnections() }
    }

    /// Starts a server that goes through a list of answers and then stays silent.
    package convenience init(answers: [[ServerStep]]) throws {
        try self.init { _, number in number < answers.count ? answers[number] : [.silence] }
    }

    /// The URL of a path on this server.
    package func url(_ path: String = "/files/") -> String { "http://127.0.0.1:\(port)\(path)" }

    /// All requests so far, in the order in which their heads arrived.
    package var requests: [ReceivedRequest] { state.withLock { $0.requests } }

    /// How many connections were made so far.
    package var connectionCount: Int { state.withLock { $0.connectionCount } }

    /// Closes everything. To be called at the end of each test.
    package func stop() {
        state.withLock { state in
            state.isStopped = true
            // Wakes the threads that wait for them; each closes its own, but not while the numbers are used here.
            for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
            if state.isListenerOpen { shutdown(listener, CInt(SHUT_RDWR)) }
        }
    }

    private func acceptConnections() {
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { break }
            let isStopped = state.withLock { state in
                state.connections.insert(connection)
                state.connectionCount += 1
                return state.isStopped
            }
            if isStopped {
                end(connection)
                break
            }
            do {
                try startThread { self.serve(connection) }
            } catch {
                end(connection)
            }
        }
        state.withLock { $0.isListenerOpen = false }
        close(listener)
    }

    private func serve(_ connection: CInt) {
        let stream = SocketStream(connection)
        while let head = stream.readHead(), let request = ReceivedRequest(head) {
            let number = state.withLock { state in
                state.requests.append(request)
                return state.requests.count - 1
            }
            var player = StepPlayer(stream: stream, request: request) { body in
                self.state.withLock { $0.requests[number].body = body }
            }
            if !player.play(script(request, number)) { break }
        }
        end(connection)
    }

    private func end(_ connection: CInt) {
        state.withLock { _ = $0.connections.remove(connection) }
        close(connection)
    }
}

private func listenOnLoopback() throws -> (CInt, UInt16) {
    struct CannotListen: Error {}
    let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            unsafe bind(listener, address, size) == 0 && listen(listener, 1024) == 0 && getsockname(listener, address, &size) == 0
        }
    }
    guard listener >= 0, result else { throw CannotListen() }
    return (listener, UInt16(bigEndian: address.sin_port))
}
