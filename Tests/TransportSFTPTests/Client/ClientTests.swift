import Locking
import ScriptedSFTP
import Testing
import TransferCore
import TransportSFTP

@Suite struct ClientTests {
    @Test func matchesResponsesInAnyOrder() async throws {
        let held = Locked<[UInt32]>([])
        let peer = ScriptedPeer { request in
            let ids = held.withLock { held in
                held.append(request.id)
                return held
            }
            // When all requests have arrived, responds to them in reverse order.
            return ids.count < 20 ? [] : ids.reversed().map { ScriptedPeer.attributes($0, size: UInt64($0)) }
        }
        let sizes = try await withThrowingTaskGroup(of: UInt64?.self) { group in
            for number in 0..<20 { group.addTask { try await peer.client.attributes(.lstat([UInt8(number)])).size } }
            return try await group.reduce(into: Set<UInt64?>()) { $0.insert($1) }
        }
        #expect(sizes.count == 20)
        await peer.close()
    }

    @Test func failsRequestsWhenChannelEnds() async throws {
        let peer = ScriptedPeer { _ in [] }
        let waiting = (0..<5).map { _ in Task { try await peer.client.attributes(.lstat([0x61])) } }
        while peer.requests.count < 5 { await Task.yield() }
        await peer.close()
        for task in waiting {
            let result = await task.result
            #expect(throws: TransferError.self) { try result.get() }
        }
        await #expect(throws: TransferError.self) { try await peer.client.perform(.remove([0x61])) }
        #expect(!peer.client.isOpen)
    }

    @Test func closesHandleOfCancelledRequest() async throws {
        let openID = Locked<UInt32?>(nil)
        let peer = ScriptedPeer { request in
            switch request.type {
            case .open:
                openID.withLock { $0 = request.id }
                return []
            // Responds to each later request, and to the pending open request.
            default: return (openID.withLock { $0 }.map { [ScriptedPeer.handle($0)] } ?? []) + [ScriptedPeer.status(request.id, .ok)]
            }
        }
        let task = Task { try await peer.client.open(.open([0x61], [.read])) }
        while openID.withLock({ $0 }) == nil { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let first = Task { try await peer.client.perform(.remove([0x61])) }
        try await first.value
        while !peer.requests.contains(where: { $0.type == .close }) { await Task.yield() }
        await peer.close()
    }

    @Test func rejectsInvalidFirstPacket() async throws {
        let greetings: [([UInt8], TransferError.Code)] = [
            (Array("Welcome to this machine!\n".utf8), .notThisProtocol),
            (ScriptedPeer.packet(.version, ScriptedPeer.number(2)), .unsupportedVersion),
            (ScriptedPeer.packet(.version), .notThisProtocol),
        ]
        for (greeting, code) in greetings {
            let peer = ScriptedPeer(greeting: greeting) { _ in [] }
            do {
                _ = try await peer.client.features()
                Issue.record("The client accepted an invalid first packet.")
            } catch let error as TransferError {
                #expect(error.code == code && error.failureClass == .unreachable)
            }
            await peer.close()
            #expect(peer.connectionError?.code == code)
        }
    }

    @Test func invalidPacketEndsConnection() async throws {
        let nonsense: [@Sendable (UInt32) -> [UInt8]] = [
            { ScriptedPeer.attributes($0 + 1, size: 1) }, { _ in ScriptedPeer.packet(.version, ScriptedPeer.number(3)) },
            { _ in [0xFF, 0xFF, 0xFF, 0xFF] }, { _ in ScriptedPeer.packet(.open, ScriptedPeer.number(1)) },
        ]
        for response in nonsense {
            let peer = ScriptedPeer { [response($0.id)] }
            do {
                _ = try await peer.client.attributes(.lstat([0x61]))
                Issue.record("The client accepted an invalid response.")
            } catch let error as TransferError {
                #expect(error.failureClass == .protocolViolation)
            }
            #expect(!peer.client.isOpen)
            await peer.close()
            #expect(peer.connectionError != nil)
        }
    }

    @Test func rejectsResponseOfWrongType() async throws {
        let peer = ScriptedPeer { [ScriptedPeer.handle($0.id)] }
        await #expect(throws: TransferError.self) { try await peer.client.attributes(.lstat([0x61])) }
        #expect(peer.client.isOpen)
        await peer.close()
    }

    @Test(arguments: [(UInt64(1), 4_096), (0, 32_640), (10_000, 10_000), (.max, 32_640)]) func appliesServerLimitsWithinBounds(
        limit: UInt64, size: Int
    ) async throws {
        let text = Array("limits@openssh.com".utf8)
        let greeting = ScriptedPeer.packet(
            .version, ScriptedPeer.number(3), ScriptedPeer.number(text.count), text, ScriptedPeer.number(1), [0x31])
        let number = (0..<8).map { UInt8(truncatingIfNeeded: limit >> (56 - 8 * $0)) }
        let peer = ScriptedPeer(greeting: greeting) { request in
            [ScriptedPeer.packet(.extendedReply, ScriptedPeer.number(Int(request.id)), number, number, number, number)]
        }
        let features = try await peer.client.features()
        #expect(features.readSize == size && features.writeSize == size)
        await peer.close()
    }
}
