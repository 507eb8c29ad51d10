import Dispatch
import Locking
import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A listening socket in a storage folder owned by this process.
final class SocketListener: Sendable {
    private let address: UnixSocketAddress
    private let descriptor: CInt
    private nonisolated(unsafe) let source: any DispatchSourceRead  // Thread-safe: dispatch_source_create(3).
    private let isClosed = Locked(false)
    /// The identity of the socket file. The listener removes the file only if its identity is still the same, so it never removes another
    /// socket with the same name.
    private let file: SocketFileIdentity

    private struct SocketFileIdentity: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64

        init?(_ path: FilePath) {
            var status = stat()
            guard unsafe path.withPlatformString({ unsafe lstat($0, &status) }) == 0 else { return nil }
            device = UInt64(truncatingIfNeeded: status.st_dev)
            inode = UInt64(truncatingIfNeeded: status.st_ino)
        }
    }

    /// Creates the socket. Replaces a socket file that an earlier owner left behind.
    ///
    /// - Throws: ``QueueError`` with the code `storageUnavailable`.
    init(at address: UnixSocketAddress) throws {
        self.address = address
        do {
            let socket = try Self.bound(to: address)
            descriptor = socket
            guard let file = SocketFileIdentity(address.path) else {
                let cause = Errno.last
                _ = Self.closeDescriptor(socket)
                throw cause
            }
            self.file = file
        } catch {
            throw QueueError(.storageUnavailable, "Cannot create the socket \(address.path): \(error).")
        }
        unsafe source = DispatchSource.makeReadSource(
            fileDescriptor: descriptor, queue: DispatchQueue(label: "transferkit.control-listener"))
    }

    deinit { close() }

    private static func closeDescriptor(_ descriptor: CInt) -> CInt {
        #if canImport(Glibc)
            Glibc.close(descriptor)
        #else
            Darwin.close(descriptor)
        #endif
    }

    private static func bound(to address: UnixSocketAddress) throws -> CInt {
        #if canImport(Glibc)
            let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw Errno.last }
        do {
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            // This process owns the folder, so an existing file was left by a process that has exited.
            _ = unsafe address.path.withPlatformString { unsafe unlink($0) }
            try unsafe address.withAddress { (pointer, size) throws(Errno) in
                if unsafe bind(descriptor, pointer, size) != 0 { throw Errno.last }
            }
            // No client can connect before listen(2), so the initial mode of the file does not matter.
            guard unsafe address.path.withPlatformString({ unsafe chmod($0, 0o600) }) == 0, listen(descriptor, 128) == 0 else {
                throw Errno.last
            }
            return descriptor
        } catch {
            _ = closeDescriptor(descriptor)
            throw error
        }
    }

    /// The pause after a failure to accept a connection.
    private static let pause = DispatchTimeInterval.milliseconds(500)

    /// Starts to accept connections.
    ///
    /// - Parameters:
    ///   - fail: Called when a connection can't be accepted, for example because this process has too many open files. The client
    ///     then keeps waiting.
    ///   - accept: Called with each connection, one call at a time. Must not block.
    func start(fail: @escaping @Sendable (Errno) -> Void, _ accept: @escaping @Sendable (ControlSocket) -> Void) {
        let descriptor = descriptor
        unsafe source.setEventHandler { [weak self] in
            while true {
                #if canImport(Glibc)
                    let client = Glibc.accept(descriptor, nil, nil)
                #else
                    let client = Darwin.accept(descriptor, nil, nil)
                #endif
                guard client < 0 else {
                    accept(ControlSocket(client))
                    continue
                }
                let cause = Errno.last
                // accept(2): these errors concern only this connection, so the next connection may succeed.
                if [.interrupted, .connectionAbort].contains(cause) { continue }
                guard cause != .wouldBlock else { return }
                fail(cause)
                // The connection is still pending, so the system would call this handler again immediately. Pause instead.
                self?.suspend()
                return
            }
        }
        unsafe source.setCancelHandler { _ = Self.closeDescriptor(descriptor) }
        unsafe source.resume()
    }

    /// Whether the socket file exists and is the one that this listener created.
    var isPresent: Bool { SocketFileIdentity(address.path) == file }

    private func suspend() {
        unsafe source.suspend()
        // Retains the source until it is resumed, because a suspended source must not be released.
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.pause) { [self] in unsafe source.resume() }
    }

    func close() {
        let wasClosed = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return isClosed
        }
        guard !wasClosed else { return }
        if isPresent { _ = unsafe address.path.withPlatformString { unsafe unlink($0) } }
        unsafe source.cancel()
    }
}
