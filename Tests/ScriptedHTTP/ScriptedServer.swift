import Locking
import SystemPackage
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// An HTTP server for tests. A script determines its responses, which may be invalid. The server listens on a free port of the loopback interface.
///
/// The server uses POSIX sockets and one thread per connection, because an HTTP library would prevent invalid responses.
package final class ScriptedServer: Sendable {
    /// Returns the steps for a request. `number` is the number of the request among all requests to this server, counted from 0.
    package typealias Script = @Sendable (_ request: ReceivedRequest, _ number: Int) -> [ServerStep]

    private struct State {
        var requests: [ReceivedRequest] = []
        var connections: Set<CInt> = []
        var connectionCount = 0
        var isStopped = false
        var isListening = true
    }

    package let port: UInt16
    private let listener: CInt
    private let script: Script
    private let headLimit: @Sendable (_ number: Int) -> Int?
    private let state = Locked(State())

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - headLimit: Returns the number of bytes of a request's head after which the server closes the connection; nil for no limit.
    ///     Called, with the number of the next request, when a connection starts to wait for a request. Use this parameter only in tests in which no
    ///     two connections wait at the same time; otherwise, both get the same number.
    ///   - script: Returns the steps for a request.
    package init(headLimit: @escaping @Sendable (_ number: Int) -> Int? = { _ in nil }, _ script: @escaping Script) throws {
        self.script = script
        self.headLimit = headLimit
        (listener, port) = try listenOnLoopback()
        let server = self
        try startThread { server.acceptConnections() }
    }

    /// Starts a server that performs the steps `answers[n]` for request n. The server does not respond to later requests.
    package convenience init(answers: [[ServerStep]]) throws {
        try self.init { _, number in number < answers.count ? answers[number] : [.silence] }
    }

    /// The URL of a path on this server.
    package func url(_ path: String = "/files/") -> String { "http://127.0.0.1:\(port)\(path)" }

    /// All requests so far, in the order in which their heads arrived.
    package var requests: [ReceivedRequest] { state.withLock { $0.requests } }

    /// The number of accepted connections.
    package var connectionCount: Int { state.withLock { $0.connectionCount } }

    /// Stops listening, and closes all connections. Call this at the end of each test.
    package func stop() {
        // Descriptors are closed and shut down only under the lock, because another server may reuse the number of a closed descriptor.
        state.withLock { state in
            state.isStopped = true
            // Wakes the waiting threads, which close their own descriptors. The listener comes first, so that a client whose connection is
            // closed can't open another one.
            if state.isListening { shutdown(listener, CInt(SHUT_RDWR)) }
            for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
        }
    }

    private func acceptConnections() {
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { break }
            let (isStopped, number) = state.withLock { state in
                state.connections.insert(connection)
                state.connectionCount += 1
                return (state.isStopped, state.connectionCount)
            }
            do {
                if isStopped { throw Errno.canceled }
                try startThread { self.serve(connection, number) }
            } catch {
                end(connection)
            }
        }
        state.withLock { state in
            state.isListening = false
            close(listener)
        }
    }

    private func end(_ connection: CInt) {
        state.withLock { state in
            state.connections.remove(connection)
            close(connection)
        }
    }

    /// Reads the start of the next request's head if the head is limited.
    ///
    /// - Returns: Whether the head is limited. The server must then close the connection.
    private func readLimitedHead(_ stream: SocketStream) -> Bool {
        guard let count = headLimit(state.withLock { $0.requests.count }) else { return false }
        _ = stream.read(count)
        return true
    }

    private func serve(_ connection: CInt, _ connectionNumber: Int) {
        let stream = SocketStream(connection)
        while !readLimitedHead(stream), let head = stream.readHead(), var request = ReceivedRequest(head) {
            request.connection = connectionNumber
            request.peer = stream.peerAddress
            let number = state.withLock { state in
                state.requests.append(request)
                return state.requests.count - 1
            }
            var player = StepPlayer(stream: stream, request: request) { body, trailers in
                self.state.withLock { state in
                    state.requests[number].body = body
                    state.requests[number].trailers = trailers
                }
            }
            if !player.play(script(request, number)) { break }
        }
        end(connection)
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
