import Dispatch
import Foundation
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A control socket without a queue. The test determines the bytes that clients receive.
final class ScriptedOwner: Sendable {
    /// The response to a client's greeting.
    static let greeting = HostileClientTests.frame(
        #"{"protocol":"transferkit-control","version":5,"owner":{"processID":1,"role":"application","since":0}}"#)

    /// The size in bytes of the buffer for a connection's unread messages.
    private static let bufferSize: CInt = 4_096
    /// The total size in bytes of the messages of ``sendHeartbeats(to:)``. The buffers of the connection and the client together hold
    /// fewer bytes.
    private static let sizeOfHeartbeats = 1 << 18

    private let listener: FileDescriptor

    /// - Parameter store: An existing folder without a control socket.
    init(_ store: FilePath) throws {
        listener = try RawSocket.owner.open(in: store)
    }

    deinit { try? listener.close() }

    /// Accepts the next client on a separate thread, and reads its request for events.
    ///
    /// - Returns: The connection, which the caller closes.
    /// - Throws: `Errno.timedOut` if no client connects, `Errno.connectionReset` if the client sends no request.
    func subscriber() async throws -> FileDescriptor {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "scripted-owner").async { [listener] in
                continuation.resume(with: Result { try Self.subscriber(listener) })
            }
        }
    }

    private static func subscriber(_ listener: FileDescriptor) throws -> FileDescriptor {
        var waiting = pollfd(fd: listener.rawValue, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&waiting, 1, 60_000) > 0 else { throw Errno.timedOut }
        let client = FileDescriptor(rawValue: accept(listener.rawValue, nil, nil))
        var size = bufferSize
        unsafe setsockopt(client.rawValue, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        var received: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 1 << 12)
        while !String(decoding: received, as: UTF8.self).contains("\"events\"") {
            let count = try unsafe bytes.withUnsafeMutableBytes { unsafe try client.read(into: $0) }
            guard count > 0 else {
                try client.close()
                throw Errno.connectionReset
            }
            received += bytes.prefix(count)
        }
        return client
    }

    /// Sends empty messages, the heartbeats of a connection, on a separate thread. When this method returns, the client has read all
    /// earlier messages, and waits for the next message that is not empty.
    ///
    /// - Parameter client: The connection, as returned by ``subscriber()``.
    func sendHeartbeats(to client: FileDescriptor) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            DispatchQueue(label: "scripted-owner").async {
                continuation.resume(with: Result { _ = try client.writeAll([UInt8](repeating: 0, count: Self.sizeOfHeartbeats)) })
            }
        }
    }
}
