import Foundation
import TUSLoopback
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Sockets with copies in other processes. A child process inherits copies of all open sockets. The copies in these tests stay in the test
/// process, with the same effect.
@Suite struct InheritedSocketTests {
    @Test func `closes connections despite copies of the socket`() async throws {
        try await withServer { server, url in
            let (cut, other) = try (RawConnection(to: url), RawConnection(to: url))
            let path = try cut.createUpload(length: 1000)
            _ = try other.offset(path)
            let copies = copySockets(of: url)
            defer { copies.forEach { _ = close($0) } }
            #expect(copies.count >= 3)
            server.inject(.cut(afterBodyBytes: 10))
            try cut.startPatch(path, at: 0, announcing: 20, bytes(10))
            #expect(cut.isAtEnd())
            other.endSending()
            #expect(other.isAtEnd())
        }
    }

    @Test func `refuses connections after stopping despite copies of the socket`() async throws {
        try await withFolder { folder in
            let server = TUSLoopbackServer(folder: folder)
            let url = try await server.start()
            let copies = copySockets(of: url)
            defer { copies.forEach { _ = close($0) } }
            #expect(copies.count == 1)
            await server.stop()
            await #expect(throws: RawConnection.Failure.self) { try await onThread { _ = try RawConnection(to: url) } }
        }
    }
}

/// Duplicates the sockets bound to the server's port: its listener and its ends of the connections.
private func copySockets(of url: URL) -> [CInt] {
    (0..<getdtablesize()).filter { localPort(of: $0) == url.port }.map { dup($0) }
}

private func localPort(of descriptor: CInt) -> Int? {
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getsockname(descriptor, $0, &size) }
    }
    guard result == 0, address.sin_family == sa_family_t(AF_INET) else { return nil }
    return Int(UInt16(bigEndian: address.sin_port))
}
