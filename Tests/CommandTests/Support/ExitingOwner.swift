import Dispatch
import Foundation
import Logging
import SystemPackage
import TransferCommands
import TransferControl
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// An owner that exits while a command uses its queue.
///
/// Relays messages between commands and a queue in this process. Can withhold the response to the last request.
final class ExitingOwner: Sendable {
    let queue: TransferQueue
    private let server: ControlServer
    private let listener: FileDescriptor
    private let socketPath: FilePath
    private let movedPath: FilePath

    init(_ store: FilePath, as role: QueueOwner.Role = .application) async throws {
        queue = try await TransferQueue(storage: .folder(store), transports: RegisteredTransports.builtIn.all.map(\.transport))
        // The long check interval prevents the server from recreating the socket, which is moved below.
        server = try ControlServer(
            for: queue, as: role, logger: Logger(label: "test"), timeout: .seconds(10), requestLimit: 1 << 28,
            checkInterval: .seconds(86_400), onStopRequest: nil)
        socketPath = store.appending("control.sock")
        movedPath = store.appending("moved.sock")
        try FileManager.default.moveItem(atPath: socketPath.string, toPath: movedPath.string)
        listener = try unsafe Self.socket(at: socketPath, bind)
        guard listen(listener.rawValue, 16) == 0 else { throw Errno(rawValue: errno) }
    }

    /// Serves requests until one contains `word`. The queue performs this last request, and then shuts down without sending the response.
    func serve(until word: String) async throws {
        let last: FileDescriptor = try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "exiting-owner").async { [self] in
                continuation.resume(
                    with: Result {
                        while true {
                            let client = try accept()
                            if try relay(client, until: word) { return client }
                            try client.close()
                        }
                    })
            }
        }
        // Closes the connection last, so that no owner exists when the command notices the lost response.
        try listener.close()
        for path in [socketPath, movedPath] { try FileManager.default.removeItem(atPath: path.string) }
        await server.shutDownQueue()
        try last.close()
    }

    /// The state that a client finds after the owner has exited.
    enum Leftovers: CaseIterable, Sendable {
        case nothing
        /// The socket file, which a killed process does not remove.
        case staleSocket
        /// A connection that the owner accepts and closes without reading its request.
        case closedConnection
    }

    /// Serves `count` requests, then shuts the queue down and leaves only `leftovers`.
    func serve(_ count: Int, leaving leftovers: Leftovers) async throws {
        let _: Void = try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "exiting-owner").async { [self] in
                continuation.resume(
                    with: Result {
                        for number in 0..<count + (leftovers == .closedConnection ? 1 : 0) {
                            let client = try accept()
                            if number < count { _ = try relay(client, until: nil) }
                            try client.close()
                        }
                    })
            }
        }
        try listener.close()
        let removed = leftovers == .staleSocket ? [movedPath] : [socketPath, movedPath]
        for path in removed { try FileManager.default.removeItem(atPath: path.string) }
        await server.shutDownQueue()
    }

    /// Accepts the next client. Throws `Errno.timedOut` if no client connects within two minutes.
    private func accept() throws -> FileDescriptor {
        var waiting = pollfd(fd: listener.rawValue, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&waiting, 1, 120_000) > 0 else { throw Errno.timedOut }
        #if canImport(Glibc)
            return FileDescriptor(rawValue: Glibc.accept(listener.rawValue, nil, nil))
        #else
            return FileDescriptor(rawValue: Darwin.accept(listener.rawValue, nil, nil))
        #endif
    }

    /// Relays one request to the queue.
    ///
    /// - Returns: True if the request contains `word`, in which case its response is withheld. False otherwise, or if the client
    ///   disconnects early.
    private func relay(_ client: FileDescriptor, until word: String?) throws -> Bool {
        let owner = try unsafe Self.socket(at: movedPath, connect)
        defer { try? owner.close() }
        var isLast = false
        // Relays the greeting, then the messages that stage the data of a large request, and finally the request itself.
        for number in 0... {
            guard let message = try? Self.read(from: client) else { return false }
            try Self.write(message, to: owner)
            let text = String(decoding: message, as: UTF8.self)
            isLast = isLast || word.map { text.contains("\"\($0)\"") } ?? false
            if number > 0, !text.hasPrefix("{\"stage\"") { break }
        }
        if isLast {
            for _ in 0..<2 { _ = try Self.read(from: owner) }
            return true
        }
        while let response = try? Self.read(from: owner), (try? Self.write(response, to: client)) != nil {}
        return false
    }

    private static func read(from descriptor: FileDescriptor) throws -> [UInt8] {
        while true {
            let length = try read(4, from: descriptor).reduce(0) { $0 << 8 | Int($1) }
            if length > 0 { return try read(length, from: descriptor) }
        }
    }

    private static func read(_ count: Int, from descriptor: FileDescriptor) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var buffer = [UInt8](repeating: 0, count: count - bytes.count)
            let read = try unsafe buffer.withUnsafeMutableBytes { unsafe try descriptor.read(into: $0) }
            guard read > 0 else { throw Errno.connectionReset }
            bytes += buffer.prefix(read)
        }
        return bytes
    }

    private static func write(_ message: [UInt8], to descriptor: FileDescriptor) throws {
        let length = UInt32(message.count)
        try descriptor.writeAll([24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) } + message)
    }

    private static func socket(
        at path: FilePath, _ open: (CInt, UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) throws -> FileDescriptor {
        #if canImport(Glibc)
            let number = Glibc.socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let number = Darwin.socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard number >= 0 else { throw Errno(rawValue: errno) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.string.utf8) }
        let status = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe open(number, pointer, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else { throw Errno(rawValue: errno) }
        return FileDescriptor(rawValue: number)
    }
}
