import Testing
import TransportTesting

/// The SFTP transport keeps the promises that every transport makes, with OpenSSH's own server.
@Suite struct SFTPConformanceTests {
    @Test(arguments: TransportPromise.allCases)
    func keeps(_ promise: TransportPromise) async throws {
        try await withFixture(cutting: .fromClient) { try await promise.verify($0) }
    }

    @Test(arguments: StreamPromise.allCases)
    func keeps(_ promise: StreamPromise) async throws {
        try await withFixture(cutting: .fromClient) { try await promise.verify($0) }
    }

    @Test(arguments: DownloadPromise.allCases)
    func keeps(_ promise: DownloadPromise) async throws {
        try await withFixture(cutting: .fromServer) { try await promise.verify($0) }
    }

    private func withFixture(
        cutting direction: CuttingRelay.Direction, _ body: (SSHFilesFixture) async throws -> Void
    ) async throws {
        let fixture = try await SSHFilesFixture(cutting: direction)
        do {
            try await body(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }
}
