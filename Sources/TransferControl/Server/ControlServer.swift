import Dispatch
import Foundation
import Locking
public import Logging
import SystemPackage
import TransferCore
public import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A server through which other processes of the same user control this process's queue, over a socket in the storage folder.
///
/// The clients are `transferq` and ``RemoteTransferQueue``. The socket has mode 0600, and the server verifies each client's user. Each client has its
/// own connection and dispatch queue, with limits and timeouts. A client that hangs, exits or sends invalid data therefore does not affect
/// other clients.
///
/// Open the server after the queue, and end both with ``shutDownQueue()``. If the process exits without closing the server, the socket file
/// remains until the queue's next owner replaces it.
public final class ControlServer: Sendable {
    private static let clientLimit = 64
    /// The maximum number of clients that receive events or send a stream. Such clients can stay connected forever. Without this limit,
    /// they could occupy all connections and block all other requests.
    private static let subscriberLimit = 48
    /// The time that a closing server waits for the current requests to complete, and then for the disconnected clients' tasks to end.
    private static let closeTimeout = Duration.seconds(2)
    private static let checkInterval = Duration.seconds(5)

    private struct State: Sendable {
        struct Client {
            let connection: ControlConnection
            let task: Task<Void, Never>
            var hasSentMessage = false
            /// Whether the client receives events or sends a stream.
            var isSubscriber = false
            var isStream = false
        }

        var clients: [Int: Client] = [:]
        var nextNumber = 0
        var isClosed = false
        /// Whether the server failed to accept the last connection.
        var cannotAccept = false

        /// Marks a client as a subscriber. Returns false if the limit allows no other subscriber.
        mutating func subscribe(_ number: Int, limit: Int) -> Bool {
            if clients.values.count(where: \.isSubscriber) >= limit {
                // Disconnected subscribers count towards the limit until the server fails to send them an event or a heartbeat. Remove them now.
                for (number, client) in clients where client.isSubscriber && client.connection.isAbandoned {
                    clients[number] = nil
                    client.connection.interrupt()
                }
                guard clients.values.count(where: \.isSubscriber) < limit else { return false }
            }
            clients[number]?.isSubscriber = true
            return true
        }

        /// If the limit is reached, disconnects the oldest client that has sent no message. Keeps clients that have sent a message, because they can
        /// be in the middle of a large request of many messages.
        ///
        /// - Returns: Whether there is room for another client.
        mutating func makeRoom(limit: Int) -> Bool {
            guard clients.count >= limit else { return true }
            guard let (number, client) = clients.filter({ !$0.value.hasSentMessage }).min(by: { $0.key < $1.key }) else { return false }
            clients[number] = nil
            client.connection.interrupt()
            return true
        }
    }

    /// The description of this process that clients receive.
    public let owner: QueueOwner
    private let queue: TransferQueue
    private let address: UnixSocketAddress
    private let listener = Locked<SocketListener?>(nil)
    private let socketCheck = Locked<Task<Void, Never>?>(nil)
    private let logger: Logger
    private let timeout: Duration
    private let onStopRequest: (@Sendable () -> Void)?
    private let requestLimit: Int
    private let state = Locked(State())

    /// Opens the socket.
    ///
    /// - Parameters:
    ///   - queue: The queue, opened by this process.
    ///   - role: The kind of program that this process runs.
    ///   - logger: The logger for problems with clients.
    ///   - timeout: How long the server waits for the next bytes of a client's request, or for a client to accept bytes, before it disconnects
    ///     the client.
    ///   - onStopRequest: Called on any executor when a client asks this process to exit. The process must then call ``shutDownQueue()``. Nil to
    ///     reject such requests.
    /// - Throws: ``/TransferKit/QueueError`` with the code `storageUnavailable`.
    public convenience init(
        for queue: TransferQueue, as role: QueueOwner.Role = .application, logger: Logger, timeout: Duration = .seconds(10),
        onStopRequest: (@Sendable () -> Void)? = nil
    ) throws {
        try self.init(
            for: queue, as: role, logger: logger, timeout: timeout, requestLimit: StagedContent.standardLimit,
            checkInterval: Self.checkInterval, onStopRequest: onStopRequest)
    }

    /// Opens the socket, like the public initializer.
    ///
    /// - Parameters:
    ///   - requestLimit: The maximum size of a request, in bytes.
    ///   - checkInterval: The interval at which the server checks that its socket file still exists.
    package init(
        for queue: TransferQueue, as role: QueueOwner.Role, logger: Logger, timeout: Duration, requestLimit: Int, checkInterval: Duration,
        onStopRequest: (@Sendable () -> Void)?
    ) throws {
        self.queue = queue
        self.logger = logger
        self.timeout = timeout
        self.requestLimit = requestLimit
        self.onStopRequest = onStopRequest
        owner = QueueOwner(processID: getpid(), role: role, since: Date())
        address = UnixSocketAddress(folder: queue.store.folder)
        try listen()
        socketCheck.withLock { socketCheck in
            socketCheck = Task { [weak self] in
                while (try? await Task.sleep(for: checkInterval)) != nil, let self { restoreSocket() }
            }
        }
    }

    private func listen() throws {
        let opened = try SocketListener(at: address)
        start(opened)
        listener.withLock { $0 = opened }
    }

    private func start(_ listener: SocketListener) {
        listener.start { [weak self] cause in
            self?.logAcceptFailure(cause)
        } _: { [weak self] socket in
            self?.serve(socket)
        }
    }

    /// Opens the socket again if its file was removed or replaced, for example by a cleanup job. Without the file, no client can reach the
    /// queue. Does nothing if the storage folder was moved, because another queue may now use the folder's former path.
    package func restoreSocket() {
        listener.withLock { listener in
            guard let current = listener, !current.isPresent, queue.store.isInPlace, let opened = try? SocketListener(at: address) else {
                return
            }
            logger.warning("The socket of the queue was removed. Created it again.")
            start(opened)
            listener = opened
            current.close()
        }
    }

    private func stopListening() {
        socketCheck.withLock { $0?.cancel() }
        listener.withLock { listener in
            listener?.close()
            listener = nil
        }
    }

    deinit { stopListening() }

    /// Closes the server, but not the queue. Call this method before you shut down the queue.
    ///
    /// Accepts no more clients, removes the socket, and returns when the current clients have their responses. After two seconds, disconnects the
    /// remaining clients, and after two more seconds returns even if a request has not ended. Such a request can still change the queue.
    public func close() async {
        stopListening()
        await dismissClients()
    }

    /// Shuts down the queue, and then closes the server.
    ///
    /// Accepts no more clients, removes the socket, and calls `TransferQueue.shutdown()`, which ends the clients' event streams. Then waits for
    /// the remaining clients, with the same time limits as ``close()``.
    public func shutDownQueue() async {
        // The socket must be removed before the queue releases its folder, because the next owner's socket has the same path.
        stopListening()
        await queue.shutdown()
        await dismissClients()
    }

    private func dismissClients() async {
        let clients = state.withLock { state in
            state.isClosed = true
            return state.clients.values
        }
        let end = Task {
            guard (try? await Task.sleep(for: Self.closeTimeout)) != nil else { return }
            for client in clients { client.connection.interrupt() }
        }
        // A request whose local files are on a disk that hangs does not end before the disk responds.
        do {
            try await TimeLimit.run(for: Self.closeTimeout * 2, .system, "Some requests have not ended.") {
                for client in clients { await client.task.value }
            }
        } catch {
            logger.warning("Closed the control socket, but some requests have not ended. The disk of their files may not be responding.")
            for client in clients { client.task.cancel() }
        }
        end.cancel()
    }

    /// Whether a client is sending a stream.
    package var hasStreams: Bool { state.withLock { $0.clients.values.contains(where: \.isStream) } }

    /// Whether a client has sent a message and is connected.
    package var hasRequests: Bool { state.withLock { $0.clients.values.contains(where: \.hasSentMessage) } }

    /// Logs why the server can't accept a connection. Logs nothing more until the server accepts a connection again.
    private func logAcceptFailure(_ cause: Errno) {
        let isNew = state.withLock { state in
            defer { state.cannotAccept = true }
            return !state.cannotAccept
        }
        if isNew { logger.warning("Cannot accept connections to the control socket (\(cause)). Clients must wait.") }
    }

    private func serve(_ socket: ControlSocket) {
        guard socket.peerUser == geteuid() else {
            logger.warning("Refused a connection from another user to the control socket.")
            return
        }
        let connection = ControlConnection(socket, timeout: timeout)
        let client = ControlClient(
            connection: connection, queue: queue, owner: owner, onStopRequest: onStopRequest, requestLimit: requestLimit)
        state.withLock { state in
            guard !state.isClosed, state.makeRoom(limit: Self.clientLimit) else { return }
            let number = state.nextNumber
            state.nextNumber += 1
            state.cannotAccept = false
            let task = Task { [weak self, logger] in
                do throws(QueueError) {
                    try await client.serve { [weak self] in
                        self?.state.withLock { $0.clients[number]?.hasSentMessage = true }
                    } subscribe: { [weak self] isStream in
                        self?.state.withLock { state in
                            guard state.subscribe(number, limit: Self.subscriberLimit) else { return false }
                            state.clients[number]?.isStream = isStream
                            return true
                        } ?? false
                    }
                } catch {
                    logger.debug("Disconnected a client of the control socket. \(error.message)")
                }
                self?.state.withLock { $0.clients[number] = nil }
            }
            state.clients[number] = State.Client(connection: connection, task: task)
        }
    }
}
