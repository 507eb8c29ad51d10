import Dispatch
import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A socket in a folder that this process owns, and whoever connects to it.
final class SocketListener: Sendable {
    private let address: SocketAddress
    private let descriptor: CInt
    /// Dispatch sources may be used from any thread (dispatch_source_create(3)), which their type does not say.
    private nonisolated(unsafe) let source: any DispatchSourceRead
    private let isClosed = Locked(false)
    /// Which file it is, so that another one of that name is never removed.
    private let file: FileNumber

    private struct FileNumber: Hashable, Sendable {
        let device: UInt64
        let number: UInt64

        init?(_ path: FilePath) {
            var status = stat()
            guard unsafe path.withPlatformString({ unsafe lstat($0, &status) }) == 0 else { return nil }
            device = UInt64(truncatingIfNeeded: status.st_dev)
            number = UInt64(truncatingIfNeeded: status.st_ino)
        }
    }

    /// Makes the socket, in the place of one that an earlier owner left.
    ///
    /// - Throws: ``QueueError`` with the code `storageUnavailable`.
    init(at address: SocketAddress) throws {
        self.address = address
        do {
            let socket = try Self.bound(to: address)
            descriptor = socket
            guard let file = FileNumber(address.path) else {
                let cause = Errno.last
                _ = Self.closing(socket)
                throw cause
            }
            self.file = file
        } catch {
            throw QueueError(.storageUnavailable, "The socket \(address.path) can't be made: \(error).")
        }
        unsafe source = DispatchSource.makeReadSource(
            fileDescriptor: descriptor, queue: DispatchQueue(label: "transferkit.control-listener"))
    }

    deinit { close() }

    private static func closing(_ descriptor: CInt) -> CInt {
        #if canImport(Glibc)
            Glibc.close(descriptor)
        #else
            Darwin.close(descriptor)
        #endif
    }

    private static func bound(to address: SocketAddress) throws -> CInt {
        #if canImport(Glibc)
            let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw Errno.last }
        do {
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            // Who owns the store owns the name: what is there is of a process that ended.
            _ = unsafe address.path.withPlatformString { unsafe unlink($0) }
            try unsafe address.withAddress { (pointer, size) throws(Errno) in
                if unsafe bind(descriptor, pointer, size) != 0 { throw Errno.last }
            }
            // Nobody can connect before listen(2), so nobody meets another mode.
            guard unsafe address.path.withPlatformString({ unsafe chmod($0, 0o600) }) == 0, listen(descriptor, 128) == 0 else {
                throw Errno.last
            }
            return descriptor
        } catch {
            _ = closing(descriptor)
            throw error
        }
    }

    /// Calls a function with each connection, one after the other, on a thread that must not be kept.
    func start(_ accept: @escaping @Sendable (ControlSocket) -> Void) {
        let descriptor = descriptor
        unsafe source.setEventHandler {
            while true {
                #if canImport(Glibc)
                    let client = Glibc.accept(descriptor, nil, nil)
                #else
                    let client = Darwin.accept(descriptor, nil, nil)
                #endif
                guard client >= 0 else { return }
                accept(ControlSocket(client))
            }
        }
        unsafe source.setCancelHandler { _ = Self.closing(descriptor) }
        unsafe source.resume()
    }

    /// Takes no more connections, and removes the socket.
    func close() {
        let wasClosed = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return isClosed
        }
        guard !wasClosed else { return }
        if FileNumber(address.path) == file { _ = unsafe address.path.withPlatformString { unsafe unlink($0) } }
        unsafe source.cancel()
    }
}
