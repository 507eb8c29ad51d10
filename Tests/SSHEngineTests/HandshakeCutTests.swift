import Foundation
import Locking
import SSHEngine
import SSHFixture
import SystemPackage
import Testing
import TransferCore

/// Breaks connections during the key exchange or authentication, after each byte in each direction.
@Suite(.timeLimit(.minutes(10)))
struct HandshakeCutTests {
    /// The bytes of one connection. The unencrypted bytes at its start can be replayed.
    private struct Recording {
        var fromServer: [UInt8] = []
        var fromClient: [UInt8] = []

        /// Returns the bytes up to the end of the first packet of a type (RFC 4253, section 6).
        static func upTo(_ type: UInt8, _ bytes: [UInt8]) -> [UInt8]? {
            guard var end = bytes.firstIndex(of: 0x0A).map({ $0 + 1 }) else { return nil }
            while end + 6 <= bytes.count {
                let packet = end + 5
                end += 4 + bytes[end..<end + 4].reduce(0) { $0 << 8 | Int($1) }
                if bytes[packet] == type { return Array(bytes.prefix(end)) }
            }
            return nil
        }
    }

    private func record(_ server: SSHServerProcess) async throws -> Recording {
        let recording = Locked(Recording())
        let relay = try RawServer.relay(
            to: server.port,
            hears: { direction, bytes in
                recording.withLock {
                    if direction == .fromClient { $0.fromClient += bytes } else { $0.fromServer += bytes }
                }
            })
        defer { relay.stop() }
        try await server.connect(try server.settings(port: relay.port)).close()
        return recording.withLock { $0 }
    }

    private func failure(_ settings: SSHSettings) async throws -> TransferError {
        try await #require(throws: TransferError.self) {
            try await SSHConnection.open(settings, credentials: TestSecrets(), logger: .silent)
        }
    }

    private func isTransientLoss(_ error: TransferError) -> Bool { error.failureClass == .transient && error.code == .connectionLost }

    /// Breaks the connection before the server's key exchange reply. The reply can't be replayed, because it depends on the client's request.
    @Test func `a connection lost at any byte of the key exchange is a transient error`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let recording = try await record(server)
        let (reply, request) = (UInt8(31), UInt8(30))
        let fromServer = try #require(Recording.upTo(reply, recording.fromServer)).dropLast()
        let fromClient = try #require(Recording.upTo(request, recording.fromClient))
        var settings = try server.settings()
        for (serverBytes, limit) in (1...fromServer.count).map({ ($0, Int.max) }) + (1...fromClient.count).map({ (fromServer.count, $0) }) {
            let relay = try RawServer { connection in
                connection.send(Array(fromServer.prefix(serverBytes)))
                if limit == .max { return connection.endOutputAndWait() }
                var rest = limit
                while rest > 0 {
                    let bytes = connection.receive()
                    guard !bytes.isEmpty else { return }
                    rest -= bytes.count
                }
            }
            settings.port = relay.port
            let error = try await failure(settings)
            relay.stop()
            #expect(isTransientLoss(error), "after \(serverBytes) bytes from the server and \(limit) from the client: \(error)")
        }
    }

    /// Breaks the connection after the key exchange. Uses a real server, because the rest of the handshake is encrypted.
    @Test(arguments: [RawServer.Direction.fromServer, .fromClient]) func `a connection lost at any byte of the login is a transient error`(
        direction: RawServer.Direction
    ) async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let recording = try await record(server)
        let isFromServer = direction == .fromServer
        let recorded = isFromServer ? recording.fromServer : recording.fromClient
        let start = try #require(Recording.upTo(isFromServer ? 31 : 30, recorded)).count
        // These 180 bytes contain the new-keys message, the service request, and the first authentication request.
        for limit in start..<start + 180 {
            let relay = try RawServer.relay(
                to: server.port, limit: isFromServer ? limit : nil, clientLimit: isFromServer ? nil : limit)
            let error = try await failure(try server.settings(port: relay.port))
            relay.stop()
            #expect(error.failureClass == .transient, "after \(limit) bytes \(direction): \(error)")
        }
    }
}
