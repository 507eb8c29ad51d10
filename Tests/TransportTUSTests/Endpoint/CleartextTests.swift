import Foundation
import Logging
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct CleartextTests {
    /// The secret does not exist, so the transport sends no request to these addresses.
    @Test(arguments: [
        ("http", "upload.invalid", 1), ("https", "upload.invalid", 0),
        ("http", "127.0.0.1:1", 0), ("http", "localhost:1", 0), ("http", "[::1]:1", 0),
    ])
    func warnsOnceAboutUnencryptedCredentials(scheme: String, host: String, count: Int) async throws {
        let file = try TemporaryFile(size: 1)
        let source = try file.source
        let credentials: [(CredentialReference, String)] = [
            (.bearer(.environment("NONE")), ""), (.password(.environment("NONE")), "me@"),
        ]
        for (credential, user) in credentials {
            let lines = LogLines()
            let transport = TUSTransport()
            for _ in 0..<3 {
                let attempt = FileAttempt(
                    transferID: "t-1", endpoint: .tus("\(scheme)://\(user)\(host)/files/", credentials: [credential]),
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
