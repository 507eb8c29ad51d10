import Dispatch
import Foundation
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

final class WebConnection: Sendable {
    private let descriptor: FileDescriptor
    private let queue = DispatchQueue(label: "web-connection")

    /// - Parameter receiveBuffer: The size of the receive buffer in bytes; nil for the system's choice.
    init(port: UInt16, receiveBuffer: CInt? = nil) throws {
        #if canImport(Glibc)
            let number = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let number = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        guard number >= 0 else { throw Errno(rawValue: errno) }
        descriptor = FileDescriptor(rawValue: number)
        if var size = receiveBuffer {
            unsafe setsockopt(number, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe connect(number, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw Errno(rawValue: errno) }
    }

    deinit { try? descriptor.close() }

    func send(_ text: String) throws { try descriptor.writeAll(Data(text.utf8)) }

    /// Closes both directions, which also ends a read.
    func disconnect() { shutdown(descriptor.rawValue, CInt(SHUT_RDWR)) }

    /// Reads the next bytes on a separate thread. Returns no bytes at the end of the connection or after a reset.
    func readSome() async -> Data {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { [descriptor] in continuation.resume(returning: Self.read(descriptor)) }
            }
        } onCancel: {
            disconnect()
        }
    }

    /// Reads until the server closes the connection, on a separate thread.
    func readToEnd() async -> Data {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { [descriptor] in
                    var data = Data()
                    while case let bytes = Self.read(descriptor), !bytes.isEmpty { data += bytes }
                    continuation.resume(returning: data)
                }
            }
        } onCancel: {
            disconnect()
        }
    }

    private static func read(_ descriptor: FileDescriptor) -> Data {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = try? unsafe bytes.withUnsafeMutableBytes { unsafe try descriptor.read(into: $0) }
        return Data(bytes.prefix(count ?? 0))
    }
}
