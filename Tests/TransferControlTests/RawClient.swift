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
        descriptor = try RawSocket.client.open(in: store)
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
