import CurlEngine
import Foundation
import Locking
import ScriptedHTTP
import Testing

#if canImport(Glibc)
    import Glibc

    @Suite struct CloseOnExecTests {
        /// The descriptor flags of all sockets that connect this process to the given port.
        private static func flags(ofSocketsTo port: UInt16) throws -> [CInt] {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { name -> CInt? in
                guard let number = CInt(name) else { return nil }
                var address = sockaddr_in()
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
                    unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getpeername(number, $0, &size) }
                }
                guard result == 0, address.sin_family == sa_family_t(AF_INET), address.sin_port == port.bigEndian else { return nil }
                return fcntl(number, F_GETFD)
            }
        }

        @Test func childProcessesDoNotInheritConnection() async throws {
            let found = Locked<Result<[CInt], any Error>?>(nil)
            let port = Locked<UInt16>(0)
            let server = try ScriptedServer { _, _ in
                [.call { found.withLock { $0 = Result { try Self.flags(ofSocketsTo: port.withLock { $0 }) } } }, .answer(200)]
            }
            port.withLock { $0 = server.port }
            let engine = CurlEngine()
            _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
            let flags = try #require(found.withLock { $0 }).get()
            #expect(!flags.isEmpty && flags.allSatisfy { $0 & FD_CLOEXEC != 0 }, "\(flags)")
            await engine.shutdown()
            server.stop()
        }
    }
#endif
