import Testing
import TransportTesting

/// The folder transport passes the conformance suite.
@Suite struct ConformanceTests {
    @Test(arguments: TransportPromise.allCases)
    func keeps(_ promise: TransportPromise) async throws {
        try await promise.verify(FolderFixture())
    }

    @Test(arguments: StreamPromise.allCases)
    func keeps(_ promise: StreamPromise) async throws {
        try await promise.verify(FolderFixture())
    }

    @Test(arguments: DownloadPromise.allCases)
    func keeps(_ promise: DownloadPromise) async throws {
        try await promise.verify(FolderFixture())
    }
}
