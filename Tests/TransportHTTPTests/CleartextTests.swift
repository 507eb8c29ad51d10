import Foundation
import Logging
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

@Suite struct CleartextTests {
    /// The secret does not exist, so the transport sends no request to these addresses.
    @Test(arguments: [
        ("http+put", "files.invalid", 1), ("http+form", "files.invalid", 1), ("https+put", "files.invalid", 0),
        ("http+put", "127.0.0.1:1", 0), ("http+form", "localhost:1", 0), ("http+put", "[::1]:1", 0),
    ])
    func warnsOnceAboutUnencryptedCredentials(scheme: String, host: String, count: Int) async throws {
        let file = try TemporaryFile(size: 1)
        let source = try file.source
        let credentials: [(CredentialReference, String)] = [
            (.bearer(.environment("NONE")), ""), (.password(.environment("NONE")), "me@"),
        ]
        for (credential, user) in credentials {
            let lines = LogLines()
            let transport = HTTPTransport()
            for _ in 0..<3 {
                let attempt = FileAttempt(
                    transferID: "t-1", endpoint: .http("\(scheme)://\(user)\(host)/files/", credentials: [credential]),
                    source: source, remotePath: try RemotePath("a"), credentials: FixedCredentials(), logger: lines.logger)
                _ = try? await transport.perform(attempt, reporting: Recorder().reporter())
            }
            let warnings = lines.texts(at: .warning)
            #expect(warnings.count == count, "\(credential.kind): \(warnings)")
            #expect(warnings.allSatisfy { $0.contains("without encryption") })
            await transport.shutdown()
        }
    }
}
