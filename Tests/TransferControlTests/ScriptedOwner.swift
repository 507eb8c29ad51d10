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

    private let listener: FileDescriptor

    /// - Parameter store: An existing folder without a control socket.
    init(_ store: FilePath) throws {
        #if canImport(Glibc)
            let number = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let number = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard number >= 0 else { throw Errno(rawValue: errno) }
        listener = FileDescriptor(rawValue: number)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: store.appending("control.sock").string.utf8) }
        let status = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(number, pointer, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0, listen(number, 16) == 0 else { throw Errno(rawValue: errno) }
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
}
