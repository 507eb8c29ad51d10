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

/// Lets other processes of the same user control a queue that this process owns, over a socket in the storage folder.
///
/// Clients are `transferq` and ``RemoteTransferQueue``. The socket has mode 0600, and each client's user is looked at. A client that hangs, sends
/// nonsense or dies harms nobody: each has a connection and a thread of its own, for which there are bounds and time-outs.
///
/// Open it after the queue, and end both with ``shutDownQueue()``. A process that ends without that leaves the socket behind, which is in nobody's way.
public final class ControlServer: Sendable {
    /// How many clients are served at once.
    private static let clientLimit = 64
    /// How many of them may follow what happens, which they may do for ever: there is always room for those that only have a request.
    private static let subscriberLimit = 48
    /// How long those that are served may take to the end when the server closes.
    private static let grace = Duration.seconds(2)
    /// How often it is looked whether the socket is still there.
    private static let lookInterval = Duration.seconds(5)

    private struct State: Sendable {
        struct Client {
            let connection: ControlConnection
            let task: Task<Void, Never>
            /// Whether it has said anything yet.
            var wasHeard = false
            var isSubscriber = false
        }

        var clients: [Int: Client] = [:]
        var next = 0
        var isClosed = false
        /// Whether the last client could not be taken.
        var isStuck = false

        /// - Returns: Whether a client may follow what happens.
        mutating func subscribe(_ number: Int, beside limit: Int) -> Bool {
            if clients.values.count(where: \.isSubscriber) >= limit {
                // Of those that are gone nobody knows before there is something to tell them.
                for (number, client) in clients where client.isSubscriber && client.connection.isAbandoned {
                    clients[number] = nil
                    client.connection.interrupt()
                }
                guard clients.values.count(where: \.isSubscriber) < limit else { return false }
            }
            clients[number]?.isSubscriber = true
            return true
        }

        /// Lets the one go that has been silent for longest, if there are as many as there may be. Those that were heard are at work: a large
        /// batch takes many messages.
        ///
        /// - Returns: Whether there is room.
        mutating func makeRoom(beside limit: Int) -> Bool {
            guard clients.count >= limit else { return true }
            guard let (number, client) = clients.filter({ !$0.value.wasHeard }).min(by: { $0.key < $1.key }) else { return false }
            clients[number] = nil
            client.connection.interrupt()
            return true
        }
    }

    /// What this process tells of itself.
    public let owner: QueueOwner
    private let queue: TransferQueue
    private let address: SocketAddress
    /// Nil once it is closed.
    private let listener = Locked<SocketListener?>(nil)
    private let lookout = Locked<Task<Void, Never>?>(nil)
    private let logger: Logger
    private let timeout: Duration
    private let endOwner: (@Sendable () -> Void)?
    private let requestLimit: Int
    private let state = Locked(State())

    /// Opens the socket.
    ///
    /// - Parameters:
    ///   - queue: The queue, which this process has just opened.
    ///   - role: What kind of program this is.
    ///   - logger: Where trouble with clients is logged to.
    ///   - timeout: How long a client may do nothing while it is waited for.
    ///   - endOwner: Called when a client asks this process to end, on any executor; it has to lead to ``shutDownQueue()``. Nil if it can't be asked.
    /// - Throws: ``QueueError`` with the code `storageUnavailable`.
    public convenience init(
        for queue: TransferQueue, as role: QueueOwner.Role = .application, logger: Logger, timeout: Duration = .seconds(10),
        endOwner: (@Sendable () -> Void)? = nil
    ) throws {
        try self.init(
            for: queue, as: role, logger: logger, timeout: timeout, requestLimit: StagedBatch.standardLimit,
            lookInterval: Self.lookInterval, endOwner: endOwner)
    }

    /// - Parameters:
    ///   - requestLimit: How many bytes a request may have.
    ///   - lookInterval: How often it is looked whether the socket is still there.
    package init(
        for queue: TransferQueue, as role: QueueOwner.Role, logger: Logger, timeout: Duration, requestLimit: Int, lookInterval: Duration,
        endOwner: (@Sendable () -> Void)?
    ) throws {
        self.queue = queue
        self.logger = logger
        self.timeout = timeout
        self.requestLimit = requestLimit
        self.endOwner = endOwner
        owner = QueueOwner(processID: getpid(), role: role, since: Date())
        address = SocketAddress(folder: queue.store.folder)
        try listen()
        lookout.withLock { lookout in
            lookout = Task { [weak self] in
                while (try? await Task.sleep(for: lookInterval)) != nil, let self { keepSocket() }
            }
        }
    }

    /// Opens the socket.
    private func listen() throws {
        let opened = try SocketListener(at: address)
        start(opened)
        listener.withLock { $0 = opened }
    }

    private func start(_ listener: SocketListener) {
        listener.start { [weak self] cause in
            self?.tell(cause)
        } _: { [weak self] socket in
            self?.serve(socket)
        }
    }

    /// Opens the socket again if somebody removed it, as those do who tidy folders up: nobody could reach the queue any more.
    private func keepSocket() {
        listener.withLock { listener in
            guard let present = listener, !present.isPresent, let opened = try? SocketListener(at: address) else { return }
            logger.warning("The socket of the queue was removed, and is made again.")
            start(opened)
            listener = opened
            present.close()
        }
    }

    private func stopListening() {
        lookout.withLock { $0?.cancel() }
        listener.withLock { listener in
            listener?.close()
            listener = nil
        }
    }

    deinit { stopListening() }

    /// Takes no more clients, removes the socket, and returns when those that are served have their answers, or were told to go after two
    /// seconds. The queue goes on. To be called before the queue is shut down.
    public func close() async {
        stopListening()
        await dismissClients()
    }

    /// Shuts the queue down, so that each client learns of it: takes no more clients, removes the socket, and calls `TransferQueue.shutdown()`.
    public func shutDownQueue() async {
        // Before the queue lets its folder go: the next owner has a socket of that name too.
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
            guard (try? await Task.sleep(for: Self.grace)) != nil else { return }
            for client in clients { client.connection.interrupt() }
        }
        for client in clients { await client.task.value }
        end.cancel()
    }

    /// Logs why no client can be served, once until one is again.
    private func tell(_ cause: Errno) {
        let isNew = state.withLock { state in
            defer { state.isStuck = true }
            return !state.isStuck
        }
        if isNew { logger.warning("Other processes that want to control the queue have to wait: \(cause).") }
    }

    private func serve(_ socket: ControlSocket) {
        guard socket.peerUser == geteuid() else {
            logger.warning("A process of another user wanted to control the queue, and was refused.")
            return
        }
        let connection = ControlConnection(socket, timeout: timeout)
        let client = ControlClient(connection: connection, queue: queue, owner: owner, endOwner: endOwner, requestLimit: requestLimit)
        state.withLock { state in
            guard !state.isClosed, state.makeRoom(beside: Self.clientLimit) else { return }
            let number = state.next
            state.next += 1
            state.isStuck = false
            let task = Task { [weak self, logger] in
                do throws(QueueError) {
                    try await client.serve { [weak self] in
                        self?.state.withLock { $0.clients[number]?.wasHeard = true }
                    } subscribes: { [weak self] in
                        self?.state.withLock { $0.subscribe(number, beside: Self.subscriberLimit) } ?? false
                    }
                } catch {
                    logger.debug("A client of the queue's socket was let go. \(error.message)")
                }
                self?.state.withLock { $0.clients[number] = nil }
            }
            state.clients[number] = State.Client(connection: connection, task: task)
        }
    }
}
