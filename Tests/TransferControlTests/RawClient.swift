import Dispatch
import Foundation
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A client that sends arbitrary bytes to the control socket of a queue.
final class RawClient: Sendable {
    private let descriptor: FileDescriptor

    init(_ store: FilePath) throws {
        #if canImport(Glibc)
            let number = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let number = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard number >= 0 else { throw Errno(rawValue: errno) }
        descriptor = FileDescriptor(rawValue: number)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: store.appending("control.sock").string.utf8) }
        let status = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe connect(number, pointer, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else { throw Errno(rawValue: errno) }
    }

    deinit { try? descriptor.close() }

    func send(_ data: Data) throws {
        try descriptor.writeAll(data)
    }

    func endSending() {
        shutdown(descriptor.rawValue, CInt(SHUT_WR))
    }

    /// Reads the next bytes on a separate thread.
    func readSome() async -> Data {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "raw-client").async { [descriptor] in
                var bytes = [UInt8](repeating: 0, count: 1 << 16)
                let count = try? unsafe bytes.withUnsafeMutableBytes { unsafe try descriptor.read(into: $0) }
                continuation.resume(returning: Data(bytes.prefix(count ?? 0)))
            }
        }
    }

    /// Reads until the other end closes the connection, on a separate thread.
    func readToEnd() async -> Data {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "raw-client").async { [descriptor] in
                var data = Data()
                var bytes = [UInt8](repeating: 0, count: 1 << 16)
                while let count = try? unsafe bytes.withUnsafeMutableBytes({ unsafe try descriptor.read(into: $0) }), count > 0 {
                    data += bytes.prefix(count)
                }
                continuation.resume(returning: data)
            }
        }
    }
}
