import Foundation
import ScriptedSFTP
import Testing
import TransferCore
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct SpaceTests {
    /// - Parameters:
    ///   - free: The free space that the server reports, in bytes.
    ///   - extensions: The extensions that the server supports.
    ///   - refusesWrites: Whether the server rejects writes without a reason.
    private func upload(
        _ size: Int, free: Int, extensions: [String], refusesWrites: Bool = false, from checkpoint: Checkpoint? = nil
    ) async throws -> (requests: [PacketType?], error: TransferError?, checkpoints: [Checkpoint]) {
        let number = ScriptedPeer.number
        let string = { (text: String) in number(text.utf8.count) + Array(text.utf8) }
        let greeting = ScriptedPeer.packet(.version, number(3) + extensions.flatMap { string($0) + string("2") })
        let peer = ScriptedPeer(greeting: greeting) { request in
            switch request.type {
            case .open: [ScriptedPeer.handle(request.id)]
            case .lstat: [ScriptedPeer.status(request.id, .noSuchFile)]
            case .fstat: [ScriptedPeer.attributes(request.id, size: UInt64(size))]
            // The fields are block sizes and block counts of 64 bits each. The size of a block is 1,024 bytes.
            case .extended:
                [
                    ScriptedPeer.packet(
                        .extendedReply,
                        [Int(request.id), 0, 4096, 0, 1024, 0, 99, 0, 99, 0, free / 1024].flatMap(number)
                            + [UInt8](repeating: 0, count: 48))
                ]
            case .write where refusesWrites: [ScriptedPeer.status(request.id, .failure)]
            default: [ScriptedPeer.status(request.id, .ok)]
            }
        }
        let recorder = Recorder()
        let error = try await PeerConnector(peer: peer).upload(size, from: checkpoint, recording: recorder)
        return (peer.requests.map(\.type), error, recorder.checkpoints)
    }

    @Test(arguments: ["fstatvfs@openssh.com", "statvfs@openssh.com"])
    func detectsFullDiskBeforeFirstByte(feature: String) async throws {
        let (requests, error, _) = try await upload(3_000_000, free: 2_048_000, extensions: [feature])
        #expect(error?.failureClass == .remoteFull && error?.code == .remoteFull)
        #expect(error?.message == "peer has 2048000 bytes free, but 3000000 bytes of reel.mov remain to be sent.")
        #expect(!requests.contains(.write))
        #expect(requests.suffix(2).contains(.remove), "The part file is removed.")
        #expect(error?.cause == nil, "The error names no part file.")
    }

    @Test(arguments: [[], ["fstatvfs@openssh.com"], ["statvfs@openssh.com"]])
    func sendsIfSpaceIsSufficientOrUnknown(extensions: [String]) async throws {
        let (requests, error, _) = try await upload(3_000_000, free: 4_096_000, extensions: extensions)
        #expect(error == nil && requests.contains(.write))
    }

    /// OpenSSH reports a full disk only as a generic failure, so the transport queries the free space.
    @Test func distinguishesFullDiskFromOtherFailures() async throws {
        let full = try await upload(100_000, free: 0, extensions: ["fstatvfs@openssh.com"], refusesWrites: true)
        #expect(full.error?.failureClass == .remoteFull)
        let other = try await upload(100_000, free: 1 << 30, extensions: ["fstatvfs@openssh.com"], refusesWrites: true)
        #expect(other.error?.failureClass == .transient)
    }

    @Test func keepsPartFileOfResumedUploadOnFullDisk() async throws {
        let first = try await upload(3_000_000, free: 0, extensions: ["fstatvfs@openssh.com"])
        let checkpoint = Checkpoint(data: try #require(first.checkpoints.last).data, confirmed: 1_000_000)
        let extensions = ["fstatvfs@openssh.com", "fsync@openssh.com"]
        let (requests, error, _) = try await upload(3_000_000, free: 1_024_000, extensions: extensions, from: checkpoint)
        #expect(error?.message == "peer has 1024000 bytes free, but 2000000 bytes of reel.mov remain to be sent.")
        #expect(!requests.contains(.remove) && !requests.contains(.write))
    }
}
