import Foundation
import Testing
import TransferCore
import TransportSFTP

struct CheckTests {
    @Test(arguments: [("", nil), ("/missing", "has no folder "), ("/a.bin", "is not a folder")] as [(String, String?)])
    func checksFolder(path: String, words: String?) async throws {
        try await ProcessFixture.with { fixture in
            try fixture.put(content(10), "a.bin")
            let transport = try #require(fixture.transport as? SFTPTransport)
            let endpoint = Endpoint.sftp("sftp://me@pipe\(fixture.server.path)\(path)", credentials: .password(.environment("PASSWORD")))
            guard let words else {
                _ = try await transport.check(endpoint, credentials: fixture.credentials)
                return
            }
            let error = await #expect(throws: TransferError.self) {
                try await transport.check(endpoint, credentials: fixture.credentials)
            }
            #expect(error?.code == .noSuchRemoteFile && error?.message.contains(words) == true, "\(error?.description ?? "")")
            #expect(error?.message.contains(fixture.server.path + path) == true)
        }
    }
}
