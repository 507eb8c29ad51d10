import Foundation
import Locking
import SSHEngine
import SSHFixture
import SystemPackage
import Testing
import TransferCore

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
            observes: { direction, bytes in
                recording.withLock {
                    if direction == .fromClient { $0.fromClient += bytes } else { $0.fromServer += bytes }
                }
            })
        defer { relay.stop() }
        // The bytes at the end of the connection do not belong to the handshake.
        var result: Recording?
        let error = try await openSFTP(try server.settings(port: relay.port)) { result = recording.withLock { $0 } }
        try #require(error == nil)
        return try #require(result)
    }

    /// Connects, logs in, opens a channel for SFTP, and exchanges versions of the protocol.
    ///
    /// - Parameter opened: Called after the server's version has arrived.
    /// - Returns: The error; nil if the server's version has arrived.
    private func openSFTP(_ settings: SSHSettings, opened: () -> Void = {}) async throws -> TransferError? {
        let connection: SSHConnection
        do {
            connection = try await SSHConnection.open(settings, credentials: TestSecrets(), logger: .silent)
        } catch let error as TransferError {
            return error
        }
        let handler = TestHandler()
        var failure: TransferError?
        do {
            let channel = try await connection.openSubsystem("sftp", handler: handler)
            // SSH_FXP_INIT of protocol version 3.
            handler.send([0, 0, 0, 5, 1, 0, 0, 0, 3])
            channel.wake()
            await handler.waitFor(bytes: 9)
            if handler.received.count >= 9 {
                opened()
            } else {
                failure = handler.ends.first ?? nil
                #expect(failure != nil, "The channel ended without an error.")
            }
        } catch let error as TransferError {
            failure = error
        }
        await connection.close()
        return failure
    }

    private func failure(_ settings: SSHSettings) async throws -> TransferError {
        try await #require(throws: TransferError.self) {
            try await SSHConnection.open(settings, credentials: TestSecrets(), logger: .silent)
        }
    }

    enum Break: CaseIterable, Sendable {
        case close, reset
    }

    /// A reset can drop bytes that the client has not read yet, so the server may seem to be unreachable.
    private func isRetried(_ error: TransferError?) -> Bool { [.transient, .unreachable].contains(error?.failureClass) }

    private func isTransientLoss(_ error: TransferError) -> Bool { error.failureClass == .transient && error.code == .connectionLost }

    /// Replays the recorded bytes, except the last byte of the server's key exchange reply. A complete reply would be invalid, because it
    /// depends on the client's request.
    @Test(arguments: Break.allCases) func `a connection lost at any byte of the key exchange is a retryable failure`(
        kind: Break
    ) async throws {
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
                if limit == .max, kind == .close { return connection.endOutputAndWait() }
                var rest = limit == .max ? 0 : limit
                while rest > 0 {
                    let bytes = connection.receive()
                    guard !bytes.isEmpty else { return }
                    rest -= bytes.count
                }
                if kind == .reset { connection.reset() }
            }
            settings.port = relay.port
            let error = try await failure(settings)
            relay.stop()
            #expect(
                kind == .close ? isTransientLoss(error) : isRetried(error),
                "\(kind) after \(serverBytes) bytes from the server and \(limit) from the client: \(error)")
        }
    }

    /// Breaks the connection of a real server: during the key exchange, the authentication, the opening of the channel, the request of the
    /// subsystem, and the exchange of the SFTP versions.
    @Test(arguments: [RawServer.Direction.fromServer, .fromClient], Break.allCases)
    func `a connection lost during the handshake is a retryable failure`(direction: RawServer.Direction, kind: Break) async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let recording = try await record(server)
        let isFromServer = direction == .fromServer
        let end = (isFromServer ? recording.fromServer : recording.fromClient).count
        // Without its last byte, the last packet is incomplete, so each cut must fail.
        let positions = Array(stride(from: 1, to: end, by: Self.step)) + (isFromServer ? Self.fromServer : Self.fromClient)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<Self.workers {
                group.addTask {
                    for limit in stride(from: worker, to: positions.count, by: Self.workers).map({ positions[$0] }) {
                        let relay = try RawServer.relay(
                            to: server.port, limit: isFromServer ? limit : nil, clientLimit: isFromServer ? nil : limit,
                            resets: kind == .reset)
                        let error = try await openSFTP(try server.settings(port: relay.port))
                        relay.stop()
                        #expect(
                            isRetried(error),
                            "\(kind) after \(limit) of \(end) bytes \(direction): \(error?.description ?? "no error")")
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// At these positions, the first packet of the key exchange is incomplete. This must not look like a lack of common algorithms.
    private static let (fromServer, fromClient) = (Array(1_148...1_334), [202, 537])

    /// The number of connections that the test breaks at the same time. Most of the time, a connection waits for the server's new process.
    private static let workers = 8

    /// The distance between the tested bytes. With a distance of 1, the test takes several minutes. The distance is prime, so the tested bytes
    /// cover each offset within a cipher block.
    private static let step = 13
}
