import Locking
import SystemPackage
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A server for tests that handles each request by a script, correctly or not. Listens on a free port of the loopback interface.
///
/// Sends bytes over POSIX sockets, with one thread for each connection, so that no library prevents an invalid response.
package final class ScriptedServer: Sendable {
    /// Returns the steps for a request. The number counts all requests to the server from 0.
    package typealias Script = @Sendable (_ request: ReceivedRequest, _ number: Int) -> [ServerStep]

    private struct State {
        var requests: [ReceivedRequest] = []
        var connections: Set<CInt> = []
        var connectionCount = 0
        var isStopped = false
        var isListening = true
    }

    /// The port of the server.
    package let port: UInt16
    private let listener: CInt
    private let script: Script
    private let cutsHead: @Sendable (_ number: Int) -> Int?
    private let state = Locked(State())

    /// Starts a server.
    ///
    /// - Parameter cutsHead: Returns the number of bytes of a request's head after which the connection is closed, by the number of the
    ///   request, or nil for no cut. Called when a connection is ready for a request, which must be the only such connection.
    package init(cutsHead: @escaping @Sendable (_ number: Int) -> Int? = { _ in nil }, _ script: @escaping Script) throws {
        self.script = script
        self.cutsHead = cutsHead
        (listener, port) = try listenOnLoopback()
        let server = self
        try startThread { server.acceptConnections() }
    }

    /// Starts a server with a list of responses. After the last one, it stays silent.
    package convenience init(answers: [[ServerStep]]) throws {
        try self.init { _, number in number < answers.count ? answers[number] : [.silence] }
    }

    /// The URL of a path on this server.
    package func url(_ path: String = "/files/") -> String { "http://127.0.0.1:\(port)\(path)" }

    /// All requests so far, in the order of their heads.
    package var requests: [ReceivedRequest] { state.withLock { $0.requests } }

    /// The number of accepted connections.
    package var connectionCount: Int { state.withLock { $0.connectionCount } }

    /// Closes all connections. Call this at the end of each test.
    package func stop() {
        // Descriptors are closed and shut down only under the lock, because another server may get the number of a closed one.
        state.withLock { state in
            state.isStopped = true
            // Wakes the waiting threads, which close their own descriptors. The listener is first, so that the client of a closed
            // connection can't open another one.
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

    private func isCut(_ stream: SocketStream) -> Bool {
        guard let count = cutsHead(state.withLock { $0.requests.count }) else { return false }
        _ = stream.read(count)
        return true
    }

    private func serve(_ connection: CInt, _ connectionNumber: Int) {
        let stream = SocketStream(connection)
        while !isCut(stream), let head = stream.readHead(), var request = ReceivedRequest(head) {
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
