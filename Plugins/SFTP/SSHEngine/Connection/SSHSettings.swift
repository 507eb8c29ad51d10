package import SystemPackage
package import TransferCore

/// Where an SSH connection goes, who it is for, and how long it may take.
package struct SSHSettings: Sendable {
    /// A name or an IP address, IPv6 without brackets.
    package var host: String
    /// The TCP port.
    package var port: UInt16 = 22
    /// Who to log in as.
    package var user: String
    /// What may be used to prove that.
    package var authentication = SSHAuthentication()
    /// How the server is known.
    package var hostKeys = HostKeyPolicy()
    /// How long the name look-up and the TCP connection may take.
    package var connectTimeout: Duration = .seconds(30)
    /// How long the server may take to agree on keys.
    package var handshakeTimeout: Duration = .seconds(30)
    /// How long authentication may take; an agent may ask a person.
    package var authenticationTimeout: Duration = .seconds(60)
    /// After how long a silence the server is asked whether it is still there. After three times as long, the connection counts as lost.
    package var keepaliveInterval: Duration = .seconds(15)
    /// How many bytes a channel may receive ahead of what was read of it.
    package var receiveWindow = 4 << 20
    /// Types of host keys that are not asked for, as the server was seen to have others than the pinned one of these.
    var refusedKeyTypes: [String] = []
    /// Whether a host key and a key exchange with SHA-1 are better than none.
    package var allowsSHA1 = false
    /// The size of the socket's buffers; nil leaves it to the system, which is best.
    package var socketBufferSize: Int?

    /// Makes settings with defaults for all that is optional.
    package init(host: String, port: UInt16 = 22, user: String) {
        self.host = host
        self.port = port
        self.user = user
    }

    /// The server in messages.
    var server: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}

/// What may be tried to log in, in this order: the agent, key files, keyboard-interactive and password; each only if the server offers it.
package struct SSHAuthentication: Sendable {
    /// Where keys are asked for that only an agent holds (draft-miller-ssh-agent).
    package enum Agent: Hashable, Sendable {
        /// The socket that `SSH_AUTH_SOCK` names, if it is set.
        case environment
        /// A socket.
        case socket(FilePath)
        /// None.
        case none
    }

    /// A private key in a file, in OpenSSH's format or PEM.
    package struct KeyFile: Hashable, Sendable {
        /// Where it is.
        package var path: FilePath
        /// What it is encrypted with, if it is.
        package var passphrase: CredentialReference?

        /// Names a file.
        package init(path: FilePath, passphrase: CredentialReference? = nil) {
            self.path = path
            self.passphrase = passphrase
        }
    }

    /// Whose keys are tried first.
    package var agent = Agent.environment
    /// How long the agent may take to tell its keys: one that hangs is not to take the time of the others. To sign, it may ask a person.
    package var agentListTimeout = Duration.seconds(5)
    /// The keys that are tried next, in order.
    package var keyFiles: [KeyFile] = []
    /// What answers questions that don't show what is typed, and what is sent as the password.
    package var password: CredentialReference?
    /// How many proofs are offered in all; OpenSSH's server disconnects at its sixth (`MaxAuthTries`, sshd_config(5)).
    package var maximumAttempts = 5

    /// Makes the default: the agent alone.
    package init() {}
}
