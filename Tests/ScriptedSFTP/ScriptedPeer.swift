import Dispatch
import Locking
package import Logging
package import TransferCore
package import TransportSFTP

/// An SFTP server in this process with scripted responses. It runs on its own dispatch queue.
package final class ScriptedPeer: SFTPLink {
    /// A request from the client. Only its type and its ID are decoded.
    package struct ReceivedRequest: Sendable {
        /// The type, or nil for an unknown type.
        package var type: PacketType?
        /// The ID of the request, which the response must repeat.
        package var id: UInt32
        /// The bytes after the ID.
        package var body: [UInt8]

        /// The offset and the length, in bytes, of a read request whose handle has four bytes.
        package var range: (offset: Int, count: Int) {
            let numbers = (0..<3).map { index in body.dropFirst(8 + 4 * index).prefix(4).reduce(0) { $0 << 8 | Int($1) } }
            return (numbers[0] << 32 | numbers[1], numbers[2])
        }
    }

    /// Returns the packets that respond to a request. Create them with ``packet(_:_:)``.
    package typealias Script = @Sendable (ReceivedRequest) -> [[UInt8]]

    package let client: SFTPClient
    package let commands: (any CommandRunner)? = nil
    package let hostKeyFingerprint: String? = nil
    private let queue = DispatchQueue(label: "peer")
    private let script: Script
    private let greeting: [UInt8]
    private let receivedRequests = Locked<[ReceivedRequest]>([])
    private let unparsedBytes = Locked<[UInt8]>([])
    private let finalError: Locked<TransferError?>

    /// - Parameter greeting: The server's first packet, or nil for protocol version 3 without extensions.
    package init(greeting: [UInt8]? = nil, _ script: @escaping Script) {
        let wakeAction = Locked<@Sendable () -> Void>({})
        let finalError = Locked<TransferError?>(nil)
        client = SFTPClient(
            serverName: "peer", wake: { wakeAction.withLock { $0 }() }, giveUp: { error in finalError.withLock { $0 = error } })
        self.finalError = finalError
        self.script = script
        self.greeting = greeting ?? Self.packet(.version, Self.number(3))
        wakeAction.withLock { $0 = { [weak self] in self?.exchangePackets() } }
        exchangePackets()
    }

    /// All requests except the client's first packet (`SSH_FXP_INIT`).
    package var requests: [ReceivedRequest] { receivedRequests.withLock { $0 } }

    /// The error with which the client gave up the connection. The client reports this error only after it has failed all waiting requests,
    /// so call ``close()`` first.
    package var connectionError: TransferError? { finalError.withLock { $0 } }

    /// Breaks the connection after the client has received the responses to all requests that have arrived. Call this method in the script.
    package func breakConnection() {
        queue.async { self.client.end(nil) }
    }

    package func close() async {
        client.end(nil)
        // Waits until all earlier work of the dispatch queue is complete.
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }

    private func exchangePackets() {
        queue.async { [self] in
            while true {
                let bytes = client.bytesToSend()
                guard !bytes.isEmpty else { return }
                for response in process(bytes) { unsafe response.withUnsafeBytes { unsafe client.receive($0) } }
            }
        }
    }

    private func process(_ bytes: [UInt8]) -> [[UInt8]] {
        unparsedBytes.withLock { $0 += bytes }
        var responses: [[UInt8]] = []
        while let packet = nextPacket() {
            guard packet.first != PacketType.initialize.rawValue else {
                responses.append(greeting)
                continue
            }
            let id = packet.dropFirst().prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            let request = ReceivedRequest(type: PacketType(rawValue: packet[0]), id: id, body: Array(packet.dropFirst(5)))
            receivedRequests.withLock { $0.append(request) }
            responses += script(request)
        }
        return responses
    }

    private func nextPacket() -> [UInt8]? {
        unparsedBytes.withLock { unparsedBytes in
            guard unparsedBytes.count >= 4 else { return nil }
            let length = unparsedBytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard unparsedBytes.count >= 4 + length else { return nil }
            defer { unparsedBytes.removeFirst(4 + length) }
            return Array(unparsedBytes[4..<4 + length])
        }
    }

    // MARK: Responses

    package static func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

    package static func packet(_ type: PacketType, _ fields: [UInt8]...) -> [UInt8] {
        let body = [type.rawValue] + fields.flatMap { $0 }
        return number(body.count) + body
    }

    package static func status(_ id: UInt32, _ code: Status.Code) -> [UInt8] {
        packet(.status, number(Int(id)), number(Int(code.rawValue)), number(0), number(0))
    }

    package static func handle(_ id: UInt32) -> [UInt8] { packet(.handle, number(Int(id)), number(4), [0, 0, 0, 1]) }

    package static func data(_ id: UInt32, _ bytes: some Collection<UInt8>) -> [UInt8] {
        packet(.data, number(Int(id)), number(bytes.count), Array(bytes))
    }

    /// Returns a response with the attributes of a regular file.
    ///
    /// - Parameter seconds: The modification time in seconds since 1970, or nil if the server does not report it.
    package static func attributes(_ id: UInt32, size: UInt64, modified seconds: Int? = nil) -> [UInt8] {
        let times = seconds.map { number($0) + number($0) } ?? []
        return packet(
            .attributes, number(Int(id)), number(times.isEmpty ? 5 : 13), number(Int(size >> 32)), number(Int(size & 0xFFFF_FFFF)),
            number(0o100644), times)
    }
}

/// Returns the same scripted server for every connection.
package struct PeerConnector: SFTPConnector {
    private let peer: ScriptedPeer

    package init(peer: ScriptedPeer) { self.peer = peer }

    package func connect(
        to endpoint: Endpoint, credentials: any CredentialProvider, logger: Logger
    ) async throws -> any SFTPLink { peer }
}
