package import SystemPackage
package import TransferCore

/// The server, the user and the time limits of an SSH connection.
package struct SSHSettings: Sendable {
    /// A name, or an IP address without brackets.
    package var host: String
    package var port: UInt16 = 22
    package var user: String
    package var authentication = SSHAuthentication()
    package var hostKeys = HostKeyPolicy()
    /// The time limit for the name lookup and the TCP connection together.
    package var connectTimeout: Duration = .seconds(30)
    /// The time limit for the key exchange.
    package var handshakeTimeout: Duration = .seconds(30)
    /// The time limit for authentication. Includes the time for an agent to ask the user.
    package var authenticationTimeout: Duration = .seconds(60)
    /// The time without bytes from the server after which the client sends a keepalive request. After three times this interval, the client
    /// considers the connection lost. Does not apply while the connection has no channels.
    package var keepaliveInterval: Duration = .seconds(15)
    /// The maximum number of bytes that the server may send over a channel before the client has read them.
    package var receiveWindow = 4 << 20
    /// The types of host keys to exclude, because the server's keys of these types are not pinned.
    var refusedKeyTypes: [String] = []
    /// Whether to accept SHA-1 in host keys, key exchanges and message authentication codes.
    package var allowsSHA1 = false
    /// The size of the socket's buffers in bytes; nil for the system's default, which is recommended.
    package var socketBufferSize: Int?

    /// Creates settings with defaults for all optional values.
    package init(host: String, port: UInt16 = 22, user: String) {
        self.host = host
        self.port = port
        self.user = user
    }

    /// The name of the server as shown in messages.
    var server: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}

/// The authentication methods, tried in this order: agent, key files, keyboard-interactive and password. The client tries a method only if
/// the server offers it.
package struct SSHAuthentication: Sendable {
    /// The agent with the user's keys (draft-miller-ssh-agent).
    package enum Agent: Hashable, Sendable {
        /// The socket whose path is in `SSH_AUTH_SOCK`, if set.
        case environment
        /// The socket at a path.
        case socket(FilePath)
        /// No agent.
        case none
    }

    /// A private key in a file, in OpenSSH's format or PEM.
    package struct KeyFile: Hashable, Sendable {
        /// The path of the file.
        package var path: FilePath
        /// The passphrase; nil if the key is not encrypted.
        package var passphrase: CredentialReference?

        /// Creates a reference to the key file at a path. Does not read the file.
        package init(path: FilePath, passphrase: CredentialReference? = nil) {
            self.path = path
            self.passphrase = passphrase
        }
    }

    /// The agent. The client tries its keys first.
    package var agent = Agent.environment
    /// The time limit for the agent to list its keys, so that a hanging agent leaves time for other methods. The limit does not apply to
    /// signing, because the agent may ask the user for confirmation.
    package var agentListTimeout = Duration.seconds(5)
    /// The key files, tried next, in this order.
    package var keyFiles: [KeyFile] = []
    /// The password. Also used for prompts with hidden input (keyboard-interactive).
    package var password: CredentialReference?
    /// The maximum total number of attempts. By default, OpenSSH's server disconnects at the sixth attempt (`MaxAuthTries`,
    /// sshd_config(5)).
    package var maximumAttempts = 5

    /// Creates the default settings, which use only the agent.
    package init() {}
}
