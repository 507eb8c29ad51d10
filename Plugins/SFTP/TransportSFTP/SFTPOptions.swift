public import HTTPSupport
public import TransferCore
import TransportSupport

/// The options of an endpoint for ``SFTPTransport``.
///
/// ```swift
/// let endpoint = Endpoint.sftp("sftp://me@files.example.com/in/", options: SFTPOptions(maxConnections: 4, keepTimes: true))
/// ```
public struct SFTPOptions: Hashable, Sendable {
    /// The servers to trust.
    public enum HostKey: Hashable, Sendable {
        /// Only known servers.
        case strict
        /// Known servers, and unknown ones, which are added to the known ones.
        case acceptNew
        /// Only a server whose key has this SHA-256, in the form of OpenSSH: `SHA256:` and Base64.
        case pinned(String)
    }

    /// An SSH agent, whose keys are tried first.
    public enum Agent: Hashable, Sendable {
        /// The agent whose socket is named by `SSH_AUTH_SOCK`, if any.
        case environment
        /// No agent.
        case none
        /// The agent with the socket at this path.
        case socket(String)
    }

    /// The files of private keys, tried in this order after the agent's keys. A credential of the kind `keyPassphrase` decrypts them.
    public var identities: [String]

    /// The SSH agent.
    public var agent: Agent

    /// The servers to trust.
    public var hostKey: HostKey

    /// A known hosts file (sshd(8)) to use instead of the user's and the system's, which are `~/.ssh/known_hosts`, `~/.ssh/known_hosts2`,
    /// `/etc/ssh/ssh_known_hosts` and `/etc/ssh/ssh_known_hosts2`; nil for these.
    public var knownHosts: String?

    /// Whether host keys and key exchanges with SHA-1 are accepted, for old servers.
    public var allowSHA1: Bool

    /// The most connections at the same time, from 1 to 16.
    public var maxConnections: Int

    /// The size in bytes from which a file is transferred over several connections, if a session asks for that (`AttemptOptions.parallel`) and
    /// ``maxConnections`` allows it; 1 or more.
    public var parallelThreshold: Int64

    /// A shell command whose input and output lead to the server, such as `ssh -W %h:%p jump.example.com`; nil to connect directly. `%h`, `%p` and
    /// `%r` stand for the host, the port and the user (ssh_config(5), "ProxyCommand"). Not together with ``network``.
    public var proxyCommand: String?

    /// How the server is reached.
    public var network: NetworkOptions

    /// Whether an uploaded file gets the modification time of its source. A downloaded file always gets the server's.
    public var keepTimes: Bool

    /// Whether a file gets the permissions of its source, except setuid, setgid and sticky bits. If the server or the system refuses them, the
    /// receipt has a warning.
    ///
    /// Otherwise a file gets the default permissions for new files, but other users get none that they lack at the source. Until it is
    /// complete, only its owner can read it.
    public var keepModes: Bool

    /// Whether an uploaded file is written as a part file, and renamed when complete.
    ///
    /// Without, a file is written under its final name from the start. This saves one round trip per file, which matters for small files on distant
    /// servers. Incomplete files are then visible, also after the session was cancelled or removed, a replaced file is lost with the first byte, and a link of that name is followed. Only for
    /// sessions with the overwrite policy `always`; the others depend on existing files.
    public var partFiles: Bool

    /// Whether the server is asked to sync uploaded files (`fsync@openssh.com`). Without, a file counts as sent when the server has it in memory:
    /// a server that loses power can then lose files.
    public var sync: Bool

    /// Makes options. Each parameter is the property of the same name.
    public init(
        identities: [String] = [], agent: Agent = .environment, hostKey: HostKey = .strict, knownHosts: String? = nil,
        allowSHA1: Bool = false,
        maxConnections: Int = 2, parallelThreshold: Int64 = 64 << 20, proxyCommand: String? = nil,
        network: NetworkOptions = NetworkOptions(), keepTimes: Bool = false, keepModes: Bool = false, partFiles: Bool = true,
        sync: Bool = true
    ) {
        self.identities = identities
        self.agent = agent
        self.hostKey = hostKey
        self.knownHosts = knownHosts
        self.allowSHA1 = allowSHA1
        self.maxConnections = maxConnections
        self.parallelThreshold = parallelThreshold
        self.proxyCommand = proxyCommand
        self.network = network
        self.keepTimes = keepTimes
        self.keepModes = keepModes
        self.partFiles = partFiles
        self.sync = sync
    }

    /// Reads the options from the settings of an endpoint, which are texts by name.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint` that names the invalid setting.
    public init(settings: [String: String]) throws(TransferError) {
        self = try Self.table.read(settings)
        try network.validate()
        guard proxyCommand == nil || network == NetworkOptions() else {
            let others = SFTPOptions(network: network).settings.keys.sorted().joined(separator: ", ")
            throw .invalidEndpoint("The setting proxyCommand can't be combined with \(others).")
        }
    }

    /// The options as settings of an endpoint: those with other values than the defaults.
    public var settings: [String: String] { Self.table.write(self) }

    static let table = SettingTable(
        of: .sftp, SFTPOptions(),
        [
            Setting(
                "agent", \.agent, .agent,
                "the path of an agent's socket, `environment` for the value of `SSH_AUTH_SOCK`, or `none`"),
            Setting("allowSHA1", \.allowSHA1, .flag, "`true` for old servers without anything better"),
            Setting(
                "hostKey", \.hostKey, .hostKey,
                "`strict` to trust only known servers, `accept-new` to also add new ones, or `SHA256:…` to trust only the server with this key"
            ),
            Setting(
                "identity", \.identities, .lines("the paths of files, separated by line breaks"),
                "the files of private keys, separated by line breaks, tried after the agent's keys"),
            Setting(
                "keepModes", \.keepModes, .flag,
                "`true` to keep a file's permissions; not those of folders. Otherwise a file gets the default permissions for new files, "
                    + "restricted to those of its source. Until it is complete, only its owner can read it"),
            Setting("keepTimes", \.keepTimes, .flag, "`true` to keep a file's modification time; not those of folders"),
            Setting(
                "knownHosts", \.knownHosts, .text("the path of a file"), "a file of known servers", nil: "the user's and the system's"),
            Setting("maxConnections", \.maxConnections, .number(1...16), "the most connections at the same time, 1 to 16"),
            Setting(
                "parallelThreshold", \.parallelThreshold, .bytes(from: 1),
                "the minimum size in bytes of a file that uses several connections, 1 or more"),
            Setting(
                "partFiles", \.partFiles, .flag,
                "`false` to write files under their final names from the start, with `--overwrite always`. An incomplete file then stays on the server when its session is cancelled or removed"
            ),
            Setting(
                "proxyCommand", \.proxyCommand, .text("a command"),
                "a command that connects to the server, such as `ssh -W %h:%p jump.example.com`; its standard error goes to the log, with `-v`"
            ),
            Setting("sync", \.sync, .flag, "`false` to consider a file sent when the server has it in memory"),
        ] + NetworkOptions.settings(proxy: .direct).map { $0.within(\.network) })
}

extension SettingFormat<SFTPOptions.Agent> {
    fileprivate static var agent: Self {
        Self("environment, none, or the path of an agent's socket") { text in
            switch text {
            case "environment": .environment
            case "none": SFTPOptions.Agent.none
            case _ where text.isEmpty || text.utf8.contains(0): nil
            default: .socket(text)
            }
        } text: { agent in
            switch agent {
            case .environment: "environment"
            case .none: "none"
            case .socket(let path): path
            }
        }
    }
}

extension SettingFormat<SFTPOptions.HostKey> {
    fileprivate static var hostKey: Self {
        Self("strict, accept-new, or SHA256: and a fingerprint") { text in
            switch text {
            case "strict": .strict
            case "accept-new": .acceptNew
            case _ where text.hasPrefix("SHA256:"): .pinned(text)
            default: nil
            }
        } text: { hostKey in
            switch hostKey {
            case .strict: "strict"
            case .acceptNew: "accept-new"
            case .pinned(let fingerprint): fingerprint
            }
        }
    }
}
