import Foundation
import SSHFixture
import Testing
import TransferCore
import TransferKit
import TransportSFTP

/// OpenSSH's server when its parts fail.
@Suite(.timeLimit(.minutes(10)))
struct SFTPFaultTests {
    /// As a start file of a login shell does that waits for something.
    @Test func aSubsystemThatNeverAnswersIsGivenUp() async throws {
        var policy = PoolPolicy()
        policy.beginTime = .milliseconds(200)
        let folder = try await SFTPServerFolder(subsystems: ["sftp": "exec sleep 600"], policy: policy)
        let endpoint = try folder.endpoint()
        let error = await #expect(throws: TransferError.self) {
            try await folder.transport.check(endpoint, credentials: ReferencedCredentials())
        }
        #expect(error?.failureClass == .unreachable && error?.code == .timedOut)
        #expect(error?.message.contains("did not begin to speak SFTP") == true, "\(error?.description ?? "")")
        await folder.close()
    }
}
