import Dispatch
import Foundation
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
    /// How long those that are served may take to the end when the server closes.
    private static let grace = Duration.seconds(2)

    private struct State: Sendable {
        struct Client {
            let connection: ControlConnection
            let task: Task<Void, Never>
            /// Whether it has said anything yet.
            var wasHeard = false
        }

        var clients: [Int: Client] = [:]
        var next = 0
        var isClosed = false

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
    private let listener: SocketListener
    private let logger: Logger
    private let timeout: Duration
    private let endOwner: (@Sendable () -> Void)?
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
    public init(
        for queue: TransferQueue, as role: QueueOwner.Role = .application, logger: Logger, timeout: Duration = .seconds(10),
        endOwner: (@Sendable () -> Void)? = nil
    ) throws {
        self.queue = queue
        self.logger = logger
        self.timeout = timeout
        self.endOwner = endOwner
        owner = QueueOwner(processID: getpid(), role: role, since: Date())
        listener = try SocketListener(at: SocketAddress(folder: queue.store.folder))
        listener.start { [weak self] socket in self?.serve(socket) }
    }

    deinit { listener.close() }

    /// Takes no more clients, removes the socket, and returns when those that are served have their answers, or were told to go after two
    /// seconds. The queue goes on. To be called before the queue is shut down.
    public func close() async {
        listener.close()
        await dismissClients()
    }

    /// Shuts the queue down, so that each client learns of it: takes no more clients, removes the socket, and calls `TransferQueue.shutdown()`.
    public func shutDownQueue() async {
        // Before the queue lets its folder go: the next owner has a socket of that name too.
        listener.close()
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

    private func serve(_ socket: ControlSocket) {
        guard socket.peerUser == geteuid() else {
            logger.warning("A process of another user wanted to control the queue, and was refused.")
            return
        }
        let connection = ControlConnection(socket, timeout: timeout)
        let client = ControlClient(connection: connection, queue: queue, owner: owner, endOwner: endOwner)
        state.withLock { state in
            guard !state.isClosed, state.makeRoom(beside: Self.clientLimit) else { return }
            let number = state.next
            state.next += 1
            let task = Task { [weak self, logger] in
                do throws(QueueError) {
                    try await client.serve { [weak self] in self?.state.withLock { $0.clients[number]?.wasHeard = true } }
                } catch {
                    logger.debug("A client of the queue's socket was let go. \(error.message)")
                }
                self?.state.withLock { $0.clients[number] = nil }
            }
            state.clients[number] = State.Client(connection: connection, task: task)
        }
    }
}
