import Locking
import Logging
import TransferCore
import TransportSFTP

/// Starts a server process for each connection, instead of connecting to a host. Refuses connections to the host `refused`.
final class ProcessConnector: SFTPConnector {
    let cuts = CutPlan()
    private let options: [String]
    private let commands: (any CommandRunner)?
    private let links = Locked<[ServerProcess]>([])

    init(_ options: [String] = [], commands: (any CommandRunner)? = nil) {
        self.options = options
        self.commands = commands
    }

    var servers: [ServerProcess] { links.withLock { $0 } }

    func connect(to endpoint: Endpoint, credentials: any CredentialProvider, logger: Logger) async throws -> any SFTPLink {
        guard !endpoint.address.contains("@refused") else {
            throw TransferError(.unreachable, .connectionRefused, "The connection was refused.")
        }
        let server = try ServerProcess(options, cuts: cuts, commands: commands)
        links.withLock { $0.append(server) }
        return server
    }
}
