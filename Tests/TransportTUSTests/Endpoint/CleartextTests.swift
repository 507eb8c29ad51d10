import Foundation
import Logging
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Credentials that are sent without encryption.
@Suite struct CleartextTests {
    /// The secret does not exist, so the transport sends no request to these addresses.
    @Test(arguments: [
        ("http://upload.invalid/files/", 1), ("https://upload.invalid/files/", 0),
        ("http://127.0.0.1:1/files/", 0), ("http://localhost:1/files/", 0), ("http://[::1]:1/files/", 0),
    ])
    func warnsOnceAboutUnencryptedCredentials(address: String, count: Int) async throws {
        let lines = LogLines()
        let file = try TemporaryFile(size: 1)
        let transport = TUSTransport()
        let source = try file.source
        for _ in 0..<3 {
            let attempt = FileAttempt(
                transferID: "t-1", endpoint: .tus(address, credentials: [.bearer(.environment("NONE"))]),
                source: source,
                remotePath: try RemotePath("a"), credentials: FixedCredentials(), logger: lines.logger)
            _ = try? await transport.perform(attempt, reporting: Recorder().reporter())
        }
        let warnings = lines.texts(at: .warning)
        #expect(warnings.count == count)
        #expect(warnings.allSatisfy { $0.contains("without encryption") })
        await transport.shutdown()
    }
}
