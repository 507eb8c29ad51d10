import Dispatch
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A server that accepts connections and never responds.
final class SilentServer: Sendable {
    private let listener: FileDescriptor
    private let port: UInt16

    init() throws {
        #if canImport(Glibc)
            let number = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let number = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        guard number >= 0 else { throw Errno(rawValue: errno) }
        listener = FileDescriptor(rawValue: number)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard unsafe bind(number, pointer, size) == 0, listen(number, 16) == 0 else { return CInt(-1) }
                return unsafe getsockname(number, pointer, &size)
            }
        }
        guard status == 0 else { throw Errno(rawValue: errno) }
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit { try? listener.close() }

    var url: String { "http://127.0.0.1:\(port)/files/" }

    /// Accepts the next connection on a separate thread, and sends nothing.
    func connection() async -> FileDescriptor {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "silent-server").async { [listener] in
                continuation.resume(returning: FileDescriptor(rawValue: accept(listener.rawValue, nil, nil)))
            }
        }
    }
}
