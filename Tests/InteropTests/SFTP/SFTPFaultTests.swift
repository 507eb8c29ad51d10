import Foundation
import Locking
import SSHFixture
import Testing
import TransferCore
import TransferKit
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct SFTPFaultTests {
    /// The SFTP subsystem starts but never responds, for example because a command in the login shell's startup file blocks.
    @Test func timesOutSilentSubsystem() async throws {
        var policy = PoolPolicy()
        policy.startTimeout = .milliseconds(200)
        let folder = try await SFTPServerFolder(subsystems: ["sftp": "exec sleep 600"], policy: policy)
        let endpoint = try folder.endpoint()
        let error = await #expect(throws: TransferError.self) {
            try await folder.transport.check(endpoint, credentials: ReferencedCredentials())
        }
        #expect(error?.failureClass == .unreachable && error?.code == .timedOut)
        #expect(error?.message.contains("did not start SFTP") == true, "\(error?.description ?? "")")
        await folder.close()
    }

    /// Only the SFTP server process is killed. The connection and its SSH server process stay alive.
    @Test(arguments: [true, false]) func resumesAfterServerProcessIsKilled(isUpload: Bool) async throws {
        let folder = try await SFTPServerFolder()
        let content = Data((0..<(16 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
        try content.write(to: isUpload ? folder.local.appending(path: "source") : folder.files.appending(path: "file"))
        let payload = isUpload ? FileAttempt.Payload.upload(try folder.source("source")) : .download(folder.destination("received"))
        let checkpoints = Locked<[Checkpoint]>([])
        let killed = Locked(0)
        let error = await #expect(throws: TransferError.self) {
            try await folder.transfer(payload, "file", recording: checkpoints) { sent in
                // 6 MiB is more than can be in flight, so the server process has handled some of the bytes.
                guard sent > 6 << 20, killed.withLock({ $0 }) == 0 else { return }
                killed.withLock { $0 = folder.server.kill(named: "sftp-server") }
            }
        }
        #expect(killed.withLock { $0 } == 1)
        #expect(error?.failureClass == .transient && error?.code == .connectionLost, "\(error?.description ?? "")")
        _ = try await folder.transfer(payload, "file", from: checkpoints.withLock { $0.last })
        let received = isUpload ? folder.files.appending(path: "file") : folder.local.appending(path: "received")
        #expect(try Data(contentsOf: received) == content)
        await folder.close()
    }
}
