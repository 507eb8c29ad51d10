import Dispatch
import Foundation
import Glibc

@testable import TransferControl
@testable import TransferKit

/// Targets for the messages between clients and the owner of a queue.
enum ControlTargets {
    /// The input is all the bytes that a client sends on a connection: a greeting, and then requests.
    static func frames(_ input: [UInt8]) {
        var ends: [CInt] = [0, 0]
        guard unsafe socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0 else { return }
        // This does not block: the buffer of the socket holds at least 64 KiB, and inputs are shorter.
        _ = unsafe input.withUnsafeBytes { unsafe send(ends[1], $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        close(ends[1])
        let connection = ControlConnection(ControlSocket(ends[0]), timeout: .seconds(1))
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            await read(connection)
            done.signal()
        }
        done.wait()
    }

    private static func read(_ connection: ControlConnection) async {
        guard (try? await connection.read(Greeting.self)) != nil else { return }
        while let request = try? await connection.read(ControlRequest.self) { check(request) }
    }

    /// The input is one message, which is decoded as each of several message types.
    static func requests(_ input: [UInt8]) {
        let data = Data(input)
        if let request = read(ControlRequest.self, data) { check(request) }
        _ = read(Greeting.self, data)
        _ = read(GreetingResponse.self, data)
        if let message = read(EventMessage.self, data), let event = message.event {
            require(!event.kind.name.isEmpty, "An event has a name.")
        }
        _ = try? read(ControlResponse<ItemStatusRecord>.self, data)?.value?.status
    }

    /// Decodes a message. Requires that the message can be encoded and decoded again, unless it contains a number that JSON can't express.
    private static func read<Message: Codable & Sendable>(_ type: Message.Type, _ data: Data) -> Message? {
        guard let message = try? JSONDecoder().decode(type, from: data) else { return nil }
        if let encoded = try? ControlConnection.encoded(message) {
            require((try? JSONDecoder().decode(type, from: encoded)) != nil, "An encoded message can be decoded: \(message)")
        }
        return message
    }

    private static func check(_ request: ControlRequest) {
        _ = request.isWait
        guard case .stage(let part) = request else { return }
        var batch = StagedContent(limit: 1 << 20)
        batch.append(part, size: 1)
        for request in (try? batch.requests(in: nil)) ?? [] { _ = try? request.options.validate() }
        _ = try? batch.transferItems(in: nil)
        if case .sessions(let sessions) = part { for session in sessions { require(session.cost > 0, "A session has a positive cost.") } }
    }
}
