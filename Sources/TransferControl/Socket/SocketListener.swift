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

/// A socket in a folder that this process owns, and whoever connects to it.
final class SocketListener: Sendable {
    private let address: SocketAddress
    private let descriptor: CInt
    private nonisolated(unsafe) let source: any DispatchSourceRead  // For any thread: dispatch_source_create(3).
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

    /// How long no connection is taken after one could not be.
    private static let pause = DispatchTimeInterval.milliseconds(500)

    /// Calls a function with each connection, one after the other, on a thread that must not be kept.
    ///
    /// - Parameter fail: Called when connections can't be taken, as when this process has too many open files. Whoever connects waits then.
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
                // accept(2): what that one connection met is no matter for the next one.
                if [.interrupted, .connectionAbort].contains(cause) { continue }
                guard cause != .wouldBlock else { return }
                fail(cause)
                // The connection still waits, so that this would be called again at once.
                self?.suspend()
                return
            }
        }
        unsafe source.setCancelHandler { _ = Self.closing(descriptor) }
        unsafe source.resume()
    }

    /// Whether the socket is still where clients look for it.
    var isPresent: Bool { FileNumber(address.path) == file }

    /// Takes no connections for a while.
    private func suspend() {
        unsafe source.suspend()
        // Keeps the source until then: one that is suspended can't be let go.
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.pause) { [self] in unsafe source.resume() }
    }

    /// Takes no more connections, and removes the socket.
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
