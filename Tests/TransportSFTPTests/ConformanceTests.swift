import Foundation
import SystemPackage
import Testing
import TransferCore
import TransportSFTP
import TransportTesting

/// Uses OpenSSH's SFTP server without SSH.
@Suite struct ConformanceTests {
    @Test(arguments: TransportPromise.allCases)
    func keepsUploadPromise(_ promise: TransportPromise) async throws {
        try await withFixture { try await promise.verify($0) }
    }

    @Test(arguments: StreamPromise.allCases)
    func keepsStreamPromise(_ promise: StreamPromise) async throws {
        try await withFixture { try await promise.verify($0) }
    }

    @Test(arguments: DownloadPromise.allCases)
    func keepsDownloadPromise(_ promise: DownloadPromise) async throws {
        try await withFixture(cutting: .fromServer) { try await promise.verify($0) }
    }

    private func withFixture(cutting direction: CutPlan.Direction = .fromClient, _ body: (ProcessFixture) async throws -> Void) async throws
    {
        let fixture = try ProcessFixture(cutting: direction)
        do {
            try await body(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }
}
