import Logging
import SSHEngine
import SSHFixture
import SystemPackage
import TransferCore

extension SSHServerProcess {
    /// Returns settings that authenticate with the key of the server's user, and that trust the server's host key.
    ///
    /// - Parameter port: The port of a relay, or nil for the server's port.
    func settings(port: UInt16? = nil) throws -> SSHSettings {
        var settings = SSHSettings(host: "127.0.0.1", port: port ?? self.port, user: user)
        settings.authentication.agent = .none
        settings.authentication.keyFiles = [.init(path: FilePath(userKey))]
        settings.hostKeys = HostKeyPolicy(userFile: FilePath(try knownHosts(port: port)))
        return settings
    }

    func connect(
        _ settings: SSHSettings? = nil, secrets: [String: String] = [:], logger: Logger = .silent
    ) async throws -> SSHConnection {
        let settings = try settings ?? self.settings()
        return try await SSHConnection.open(settings, credentials: TestSecrets(values: secrets), logger: logger)
    }

    /// The requested authentication methods, in order. Requires a server with `LogLevel DEBUG1`.
    var requestedMethods: [String] {
        // The log has the line endings of a terminal (CR LF).
        log.split(whereSeparator: \.isNewline).filter { $0.contains("userauth-request for user") }.compactMap { line in
            line.split(separator: " method ").last?.split(separator: " ").first.map(String.init)
        }
    }
}

extension Logger {
    static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
