import Locking
import Logging
import TransferCore
import TransportSFTP

/// Opens connections by calling a closure of the test.
final class TestConnector: SFTPConnector {
    private let count = Locked(0)
    private let make: @Sendable (Int) async throws -> any SFTPLink

    /// - Parameter make: Opens a connection. Receives the number of the connection, counted from 0.
    init(_ make: @escaping @Sendable (Int) async throws -> any SFTPLink) {
        self.make = make
    }

    var attempts: Int { count.withLock { $0 } }

    func connect(to endpoint: Endpoint, credentials: any CredentialProvider, logger: Logger) async throws -> any SFTPLink {
        let number = count.withLock { count in
            defer { count += 1 }
            return count
        }
        return try await make(number)
    }
}
