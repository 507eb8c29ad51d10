import Testing
import TransferCore
import TransportTesting

@Suite struct SFTPConformanceTests {
    @Test(arguments: TransportPromise.allCases, [1, 3])
    func keepsUploadPromise(_ promise: TransportPromise, parallel: Int) async throws {
        try await withFixture(cutting: .fromClient, parallel: parallel) { try await promise.verify($0) }
    }

    @Test(arguments: StreamPromise.allCases)
    func keepsStreamPromise(_ promise: StreamPromise) async throws {
        try await withFixture(cutting: .fromClient) { try await promise.verify($0) }
    }

    @Test(arguments: DownloadPromise.allCases, [1, 3])
    func keepsDownloadPromise(_ promise: DownloadPromise, parallel: Int) async throws {
        try await withFixture(cutting: .fromServer, parallel: parallel) { try await promise.verify($0) }
    }

    private func withFixture(
        cutting direction: CuttingRelay.Direction, parallel: Int = 1, _ body: (SSHFilesFixture) async throws -> Void
    ) async throws {
        let fixture = try await SSHFilesFixture(cutting: direction, options: AttemptOptions(segmentsPerFile: parallel))
        do {
            try await body(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }
}
