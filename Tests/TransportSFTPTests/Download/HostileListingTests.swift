import Foundation
import Locking
import Logging
import ScriptedSFTP
import Testing
import TransferCore
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct HostileListingTests {
    private func list(
        atMost limit: Int = .max, refusal: Status.Code? = nil, _ script: @escaping ScriptedPeer.Script
    ) async throws -> (names: [String], kinds: [RemoteEntry.Kind], error: (any Error)?, peer: ScriptedPeer) {
        let peer = ScriptedPeer { request in
            guard request.type == .opendir else { return script(request) }
            return [refusal.map { ScriptedPeer.status(request.id, $0) } ?? ScriptedPeer.handle(request.id)]
        }
        let transport = SFTPTransport(connector: PeerConnector(peer: peer))
        let listed = Locked<[RemoteEntry]>([])
        var failure: (any Error)?
        do {
            let attempt = ListingAttempt(
                endpoint: .sftp("sftp://me@peer/"), remotePath: try RemotePath("folder"), credentials: NoCredentials(),
                logger: Logger(label: "test"))
            try await transport.list(attempt) { entries in
                let count = listed.withLock { listed in
                    listed += entries
                    return listed.count
                }
                guard count < limit else { throw LimitReached() }
            }
        } catch {
            failure = error
        }
        // When this request completes, all earlier requests have arrived.
        _ = try? await peer.client.attributes(.stat([]))
        await transport.shutdown()
        await peer.close()
        let entries = listed.withLock { $0 }
        return (entries.map { String(decoding: $0.name, as: UTF8.self) }, entries.map(\.kind), failure, peer)
    }

    private struct LimitReached: Error {}

    /// - Parameter mode: The mode of each file with its type (inode(7)); nil if the server omits the mode.
    private static func names(_ id: UInt32, _ names: [String], mode: Int? = 0o100644) -> [UInt8] {
        let files = names.flatMap { name -> [UInt8] in
            let attributes = mode.map { ScriptedPeer.number(4) + ScriptedPeer.number($0) } ?? ScriptedPeer.number(0)
            return ScriptedPeer.number(name.utf8.count) + Array(name.utf8) + ScriptedPeer.number(0) + attributes
        }
        return ScriptedPeer.packet(.name, ScriptedPeer.number(Int(id)), ScriptedPeer.number(names.count), files)
    }

    @Test func receiverStopsEndlessListing() async throws {
        let number = Locked(0)
        let result = try await list(atMost: 1_000) { request in
            guard request.type == .readdir else { return [ScriptedPeer.status(request.id, .ok)] }
            let next = number.withLock { number in
                number += 1
                return number
            }
            return [Self.names(request.id, (0..<100).map { "\(next)-\($0)" })]
        }
        #expect(result.error is LimitReached && result.names.count == 1_000)
        #expect(result.peer.requests.count { $0.type == .readdir } < 30)
        #expect(result.peer.requests.count { $0.type == .close } == 1)
    }

    /// A response may contain thousands of names without attributes. The receiver gets the first entries before the transport has requested
    /// the attributes of all entries.
    @Test func deliversEntriesInBatches() async throws {
        let result = try await list(atMost: 1) { request in
            switch request.type {
            case .readdir: [Self.names(request.id, (0..<250).map { "\($0)" }, mode: nil)]
            case .lstat: [ScriptedPeer.attributes(request.id, size: 9)]
            default: [ScriptedPeer.status(request.id, .ok)]
            }
        }
        #expect(result.error is LimitReached && result.names.count == 100)
        #expect(result.peer.requests.count { $0.type == .lstat } == 100)
    }

    @Test func reportsUnreadableFolder() async throws {
        let result = try await list(refusal: .permissionDenied) { request in
            request.type == .stat
                ? [ScriptedPeer.status(request.id, .permissionDenied)] : [ScriptedPeer.status(request.id, .ok)]
        }
        let error = result.error as? TransferError
        #expect(error?.failureClass == .permanent && error?.code == .forbidden)
    }

    @Test func limitsNumberOfEmptyResponses() async throws {
        let result = try await list { request in
            request.type == .readdir ? [Self.names(request.id, [])] : [ScriptedPeer.status(request.id, .ok)]
        }
        #expect((result.error as? TransferError)?.failureClass == .protocolViolation && result.names.isEmpty)
    }

    @Test func rejectsResponsesOfWrongType() async throws {
        let responses: [@Sendable (UInt32) -> [UInt8]] = [
            { ScriptedPeer.handle($0) }, { ScriptedPeer.status($0, .ok) }, { ScriptedPeer.attributes($0, size: 3) },
        ]
        for response in responses {
            let result = try await list { request in
                request.type == .readdir ? [response(request.id)] : [ScriptedPeer.status(request.id, .ok)]
            }
            #expect((result.error as? TransferError)?.failureClass == .protocolViolation)
        }
    }

    @Test func deliversUnsafeNamesWithoutUsingThemInRequests() async throws {
        let isListed = Locked(false)
        let names = ["../out", "/etc/passwd", "nul\0", "", ".", "..", "good"]
        let result = try await list { request in
            switch request.type {
            case .readdir:
                let isFirst = isListed.withLock { isListed in
                    defer { isListed = true }
                    return !isListed
                }
                // Servers may omit the type of an entry.
                return [isFirst ? Self.names(request.id, names, mode: nil) : ScriptedPeer.status(request.id, .endOfFile)]
            case .lstat: return [ScriptedPeer.attributes(request.id, size: 9)]
            default: return [ScriptedPeer.status(request.id, .ok)]
            }
        }
        #expect(result.error == nil && result.names == ["../out", "/etc/passwd", "nul\0", "", "good"])
        #expect(result.kinds == [.file(size: nil), .file(size: nil), .file(size: nil), .file(size: nil), .file(size: 9)])
        let attributeRequests = result.peer.requests.filter { $0.type == .lstat }
        #expect(attributeRequests.map { String(decoding: $0.body.dropFirst(4), as: UTF8.self) } == ["/folder/good"])
    }

    @Test func treatsHugeSizesAsUnknown() async throws {
        let isListed = Locked(false)
        let result = try await list { request in
            guard request.type == .readdir else { return [ScriptedPeer.status(request.id, .ok)] }
            let isFirst = isListed.withLock { isListed in
                defer { isListed = true }
                return !isListed
            }
            guard isFirst else { return [ScriptedPeer.status(request.id, .endOfFile)] }
            let attributes = ScriptedPeer.number(5) + [UInt8](repeating: 0xFF, count: 8) + ScriptedPeer.number(0o100644)
            let file = ScriptedPeer.number(1) + [0x61] + ScriptedPeer.number(0) + attributes
            return [ScriptedPeer.packet(.name, ScriptedPeer.number(Int(request.id)), ScriptedPeer.number(1), file)]
        }
        #expect(result.error == nil && result.kinds == [.file(size: nil)])
    }

    @Test func rejectsImpossibleNumberOfNames() async throws {
        let result = try await list { request in
            request.type == .readdir
                ? [ScriptedPeer.packet(.name, ScriptedPeer.number(Int(request.id)), ScriptedPeer.number(0x7FFF_FFFF))]
                : [ScriptedPeer.status(request.id, .ok)]
        }
        #expect((result.error as? TransferError)?.failureClass == .protocolViolation && result.peer.connectionError != nil)
    }
}
