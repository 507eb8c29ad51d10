import Foundation
import Locking
import Logging
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Credentials that are sent without encryption.
@Suite struct CleartextTests {
    /// Records warnings.
    private struct Handler: LogHandler {
        let warnings: Locked<[String]>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            if event.level == .warning { warnings.withLock { $0.append("\(event.message)") } }
        }
    }

    /// The secret can't be read, so no request is sent to these addresses.
    @Test(arguments: [
        ("http://upload.invalid/files/", 1), ("https://upload.invalid/files/", 0),
        ("http://127.0.0.1:1/files/", 0), ("http://localhost:1/files/", 0), ("http://[::1]:1/files/", 0),
    ])
    func warnsOnce(address: String, count: Int) async throws {
        let warnings = Locked<[String]>([])
        let logger = Logger(label: "test") { _ in Handler(warnings: warnings) }
        let file = try TemporaryFile(size: 1)
        let transport = TUSTransport()
        let source = try file.source
        for _ in 0..<3 {
            let attempt = FileAttempt(
                transferID: "t-1", endpoint: .tus(address, credentials: [.bearer(.environment("NONE"))]),
                source: source,
                remotePath: try RemotePath("a"), credentials: FixedCredentials(), logger: logger)
            _ = try? await transport.perform(attempt, reporting: Recorder().reporter())
        }
        #expect(warnings.withLock { $0.count } == count)
        #expect(warnings.withLock { $0 }.allSatisfy { $0.contains("without encryption") })
        await transport.shutdown()
    }
}
