import Dispatch
import Foundation
import SystemPackage
import TransferKit

/// One end of a connection between a client and the owner of a queue.
///
/// A message consists of a length in four big-endian bytes, followed by content of that length: JSON, or the bytes of a ``StreamFrame``. An empty
/// message is a heartbeat, sent while a request or a stream is in progress. The methods block, so each connection runs its methods on its own
/// dispatch queue.
actor ControlConnection {
    /// The size of the largest permitted message, in bytes. Large requests and lists are split into several messages. A single value, such as a
    /// session's context, can't be split; if it exceeds the limit, the request fails.
    static let messageLimit = 8 << 20
    private static let heartbeatSeconds = 2

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private let executor = SocketExecutor()
    private nonisolated let socket: ControlSocket
    private let timeout: Duration
    private var buffer: [UInt8] = []
    /// The number of bytes at the start of the buffer that belong to messages already read.
    private var consumed = 0
    /// The size in bytes of the last received message.
    private(set) var sizeOfLastMessage = 0

    /// - Parameter timeout: How long a call waits for the other end to send or accept bytes before the call fails with `ownerSilent`.
    init(_ socket: ControlSocket, timeout: Duration) {
        self.socket = socket
        self.timeout = timeout
    }

    /// Ends the connection. Calls that wait for the other end fail with `ownerLost`.
    nonisolated func interrupt() { socket.interrupt() }

    /// Whether the other end has disconnected. Safe to read while the connection is in use.
    nonisolated var isAbandoned: Bool { socket.isAbandoned }

    /// Connects to the owner of a queue, which must run as the same user.
    ///
    /// - Throws: ``QueueError`` with the code `ownerUnreachable` or `ownerSilent`.
    func connect(to address: UnixSocketAddress) async throws(QueueError) {
        let deadline = ContinuousClock.now + timeout
        while true {
            do {
                try socket.connect(to: address)
                break
            } catch Errno.wouldBlock where ContinuousClock.now < deadline {
                do { try await Task.sleep(for: .milliseconds(10)) } catch { throw .unreachable(address.folder, "the task was cancelled") }
            } catch Errno.wouldBlock {
                throw .silent
            } catch {
                throw .unreachable(address.folder, "\(error)")
            }
        }
        guard socket.peerUser == geteuid() else {
            throw .unreachable(address.folder, "the process at its socket belongs to another user")
        }
    }

    /// Encodes and sends a message.
    ///
    /// - Throws: ``QueueError`` with the code `ownerLost` if the other end has disconnected, `ownerSilent` after the timeout, or
    ///   `invalidMessage`.
    func write(_ message: some Encodable & Sendable) throws(QueueError) {
        try write(data: try Self.encoded(message))
    }

    /// Sends a message encoded by ``encoded(_:)``. Throws the code `ownerLost` or `ownerSilent`.
    func write(data: Data) throws(QueueError) {
        let length = UInt32(data.count)
        try send([24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) })
        try send([UInt8](data))
    }

    /// Sends heartbeats at regular intervals, as long as `isNeeded` returns true.
    ///
    /// Heartbeats are sent on the connection's dispatch queue, because a request can occupy all threads of the cooperative pool. On a machine with
    /// a single core, the pool has only one thread.
    ///
    /// - Parameter lost: Called on the dispatch queue when a heartbeat can't be sent.
    nonisolated func sendHeartbeats(while isNeeded: @escaping @Sendable () -> Bool, orElse lost: @escaping @Sendable () -> Void) {
        executor.queue.asyncAfter(deadline: .now() + .seconds(Self.heartbeatSeconds)) { [weak self] in
            guard let self, isNeeded() else { return }
            guard (try? assumeIsolated { connection in try connection.send([0, 0, 0, 0]) }) != nil else { return lost() }
            sendHeartbeats(while: isNeeded, orElse: lost)
        }
    }

    static nonisolated func encoded(_ message: some Encodable) throws(QueueError) -> Data {
        do {
            let data = try JSONEncoder().encode(message)
            guard data.count <= messageLimit else { throw QueueError.tooLarge(data.count) }
            return data
        } catch let error as QueueError {
            throw error
        } catch {
            throw QueueError(.invalidMessage, "Cannot encode a message for the other process: \(error).")
        }
    }

    /// Receives a message.
    ///
    /// - Throws: ``QueueError`` with the code `ownerLost` if the other end has disconnected, `ownerSilent` after the timeout, or `invalidMessage`.
    func read<Message: Decodable & Sendable>(_ type: Message.Type) throws(QueueError) -> Message {
        let data = try readData()
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch {
            throw QueueError(.invalidMessage, "The other process sent an invalid message.")
        }
    }

    /// Receives a message without decoding it. Throws the same errors as ``read(_:)``.
    func readData() throws(QueueError) -> Data {
        while true {
            // The length stays in the buffer until its message has arrived, so that a call after `ownerSilent` reads the same message.
            let length = Int(try buffered(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
            guard length <= Self.messageLimit else { throw .tooLarge(length) }
            let message = try buffered(4 + length).dropFirst(4)
            consumed += 4 + length
            guard length > 0 else { continue }
            sizeOfLastMessage = length
            return Data(message)
        }
    }

    /// Returns the next `count` bytes. Receives bytes until the buffer contains enough, and leaves the returned bytes in the buffer.
    private func buffered(_ count: Int) throws(QueueError) -> ArraySlice<UInt8> {
        if consumed > 0, buffer.count - consumed < count {
            buffer.removeFirst(consumed)
            consumed = 0
        }
        while buffer.count - consumed < count {
            do {
                let bytes = try socket.receive(1 << 16)
                guard !bytes.isEmpty else { throw QueueError.lost }
                buffer += bytes
            } catch Errno.wouldBlock {
                guard try wait(for: .bytes) else { throw .silent }
            } catch {
                throw .lost
            }
        }
        return buffer[consumed..<consumed + count]
    }

    private func send(_ bytes: [UInt8]) throws(QueueError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            do {
                rest = rest.dropFirst(try socket.send(rest))
            } catch Errno.wouldBlock {
                guard try wait(for: .room) else { throw .silent }
            } catch {
                throw .lost
            }
        }
    }

    private func wait(for readiness: ControlSocket.Readiness) throws(QueueError) -> Bool {
        do {
            return try socket.wait(for: readiness, timeout)
        } catch {
            throw .lost
        }
    }
}

/// Runs a connection's methods on a dispatch queue, because they block. The threads of the cooperative pool must not block.
private final class SocketExecutor: SerialExecutor {
    let queue = DispatchQueue(label: "transferkit.control")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}

extension QueueError {
    static func unreachable(_ folder: FilePath, _ cause: String) -> QueueError {
        QueueError(.ownerUnreachable, "No process responds for the queue in \(folder): \(cause).")
    }

    static var lost: QueueError { QueueError(.ownerLost, "The process that owns the queue exited before responding.") }

    static var silent: QueueError {
        QueueError(.ownerSilent, "The process that owns the queue is not responding. Resume or stop that process, and try again.")
    }

    static func tooLarge(_ count: Int) -> QueueError {
        QueueError(
            .invalidMessage,
            "A message of \(count) bytes exceeds the limit of \(ControlConnection.messageLimit) bytes.")
    }
}
