package import SystemPackage
package import TransferCore

/// The server, the user and the time limits of an SSH connection.
package struct SSHSettings: Sendable {
    /// A name or an IP address, IPv6 without brackets.
    package var host: String
    /// The TCP port.
    package var port: UInt16 = 22
    /// The user to log in as.
    package var user: String
    /// How the user is authenticated.
    package var authentication = SSHAuthentication()
    /// How the server is recognized.
    package var hostKeys = HostKeyPolicy()
    /// The limit for the name lookup and the TCP connection together.
    package var connectTimeout: Duration = .seconds(30)
    /// The limit for the key exchange.
    package var handshakeTimeout: Duration = .seconds(30)
    /// The limit for authentication; an agent can ask the user.
    package var authenticationTimeout: Duration = .seconds(60)
    /// After this silence, the server is asked whether it is still there. After three times this long, the connection counts as lost.
    package var keepaliveInterval: Duration = .seconds(15)
    /// The maximum number of unread bytes of a channel.
    package var receiveWindow = 4 << 20
    /// Types of host keys that are not requested, because the server's key of that type is not the pinned one.
    var refusedKeyTypes: [String] = []
    /// Whether to accept a host key and a key exchange with SHA-1.
    package var allowsSHA1 = false
    /// The size of the socket's buffers; nil, which is best, leaves it to the system.
    package var socketBufferSize: Int?

    /// Creates settings with defaults for all optional values.
    package init(host: String, port: UInt16 = 22, user: String) {
        self.host = host
        self.port = port
        self.user = user
    }

    /// The server in messages.
    var server: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}

/// The methods for logging in, in this order: agent, key files, keyboard-interactive and password; each only if the server offers it.
package struct SSHAuthentication: Sendable {
    /// The agent that holds keys (draft-miller-ssh-agent).
    package enum Agent: Hashable, Sendable {
        /// The socket in `SSH_AUTH_SOCK`, if set.
        case environment
        /// A socket.
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

        /// Creates a key file from its path.
        package init(path: FilePath, passphrase: CredentialReference? = nil) {
            self.path = path
            self.passphrase = passphrase
        }
    }

    /// The agent, whose keys are tried first.
    package var agent = Agent.environment
    /// How long the agent can take to list its keys, so that a hanging agent leaves time for other methods. Signing can take longer,
    /// because the agent can ask the user.
    package var agentListTimeout = Duration.seconds(5)
    /// The keys to try next, in order.
    package var keyFiles: [KeyFile] = []
    /// The password, which also answers questions whose input is hidden.
    package var password: CredentialReference?
    /// The maximum number of attempts in total; OpenSSH's server disconnects at the sixth (`MaxAuthTries`, sshd_config(5)).
    package var maximumAttempts = 5

    /// Creates the default: the agent only.
    package init() {}
}
