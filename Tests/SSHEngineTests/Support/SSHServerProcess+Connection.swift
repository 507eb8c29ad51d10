import Logging
import SSHEngine
import SSHFixture
import SystemPackage
import TransferCore

extension SSHServerProcess {
    /// Settings by which the server's user logs in with their key, and by which the server is known.
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

    /// The methods by which users asked to be let in, in order; told to a server with `LogLevel DEBUG1`.
    var methodsAsked: [String] {
        // Lines end as those of a terminal do.
        log.split(whereSeparator: \.isNewline).filter { $0.contains("userauth-request for user") }.compactMap { line in
            line.split(separator: " method ").last?.split(separator: " ").first.map(String.init)
        }
    }
}

extension Logger {
    static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}

/// Secrets by the names of the variables that they would be in.
struct TestSecrets: CredentialProvider {
    var values: [String: String] = [:]

    func secret(for reference: CredentialReference) async throws -> Secret {
        guard case .environment(let name) = reference.source, let value = values[name] else {
            throw TransferError(.credentials, .credentialsUnavailable, "There is no such secret.")
        }
        return Secret(value)
    }
}
