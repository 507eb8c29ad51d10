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
        /// Only servers whose key is in the known hosts files (``SFTPOptions/knownHosts``).
        case strict
        /// The servers of ``strict``, and servers without any key in the files. The transport adds the key of such a new server to the
        /// user's file, or to ``SFTPOptions/knownHosts`` if that is set.
        case acceptNew
        /// Only the server whose key has this SHA-256 fingerprint, in OpenSSH's format: `SHA256:` and Base64. The transport ignores the
        /// known hosts files.
        case pinned(String)
    }

    /// The SSH agent to use. The transport tries the agent's keys before the files in ``SFTPOptions/identities``.
    public enum Agent: Hashable, Sendable {
        /// The agent whose socket path is in `SSH_AUTH_SOCK`, if set.
        case environment
        /// No agent.
        case none
        /// The agent whose socket is at this path.
        case socket(String)
    }

    /// The paths of files with private keys. The transport tries them in this order, after the agent's keys. A credential of the kind
    /// `keyPassphrase` decrypts the keys.
    public var identities: [String]

    /// The SSH agent.
    public var agent: Agent

    /// The servers to trust.
    public var hostKey: HostKey

    /// The known hosts file (sshd(8)); nil for the user's and the system's files, which are `~/.ssh/known_hosts`, `~/.ssh/known_hosts2`,
    /// `/etc/ssh/ssh_known_hosts` and `/etc/ssh/ssh_known_hosts2`.
    public var knownHosts: String?

    /// Whether to accept SHA-1 in host keys, key exchanges and message authentication codes, for old servers.
    public var allowSHA1: Bool

    /// The maximum number of concurrent connections, from 1 to 16.
    public var maxConnections: Int

    /// The minimum size in bytes of a file that the transport transfers over several connections, if the session
    /// (`AttemptOptions.segmentsPerFile`) and ``maxConnections`` allow several; 1 or more.
    public var parallelThreshold: Int64

    /// A shell command that connects to the server, such as `ssh -W %h:%p jump.example.com`; nil to connect without a command. The
    /// transport sends its bytes to the command's standard input, and reads the server's bytes from the command's standard output. The
    /// transport replaces `%h`, `%p` and `%r` with the host, the port and the user (ssh_config(5), "ProxyCommand"). This option can't be
    /// combined with ``network``.
    public var proxyCommand: String?

    /// The network options: proxy, interface and kind of IP address.
    public var network: NetworkOptions

    /// Whether an uploaded file gets the modification time of its source. With the overwrite policies `different` and `newer`, an uploaded
    /// file always gets this time. Streams have no modification time. A downloaded file gets the modification time that the server reports,
    /// regardless of this option.
    public var keepTimes: Bool

    /// Whether a file gets the permissions of its source, except setuid, setgid and sticky bits. If the server or the system refuses them, the
    /// receipt contains a warning.
    ///
    /// If false, a file gets the default permissions for new files, but no permission that its source lacks. Bytes from memory and streams
    /// have no source file, so they always get the default permissions. In all cases, only the owner can read a part file, provided that the
    /// server supports permissions.
    public var keepModes: Bool

    /// Whether to upload to a part file, and to rename this file when it is complete.
    ///
    /// If false, the transport writes a file under its final name from the start. This saves one round trip per file, which matters for
    /// small files on distant servers. Incomplete files are then visible. They stay on the server even if the session is removed, or
    /// cancelled with the removal of its unfinished files. The old content of a replaced file is lost when the upload starts. If the final
    /// name is a link, the server follows the link. This option has an effect only with the overwrite policy `always`. With other policies,
    /// the transport uses part files, because these policies depend on existing files.
    public var partFiles: Bool

    /// Whether to sync uploaded files to the disk, if the server supports syncs (`fsync@openssh.com`). If false, the transport considers a
    /// file sent when the server has it in memory. A server that loses power can then lose sent files.
    public var sync: Bool

    /// Creates options. Each parameter sets the property of the same name.
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

    /// Reads the options from an endpoint's settings, a dictionary of strings.
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

    /// The options as settings of an endpoint. Omits options with their default value.
    public var settings: [String: String] { Self.table.write(self) }

    static let table = SettingTable(
        of: .sftp, SFTPOptions(),
        [
            Setting(
                "agent", \.agent, .agent,
                "the path of an agent's socket, `environment` for the value of `SSH_AUTH_SOCK`, or `none`"),
            Setting("allowSHA1", \.allowSHA1, .flag, "`true` to accept SHA-1 from old servers"),
            Setting(
                "hostKey", \.hostKey, .hostKey,
                "`strict` to trust only known servers, `accept-new` to also add new ones, or `SHA256:…` to trust only the server with this key"
            ),
            Setting(
                "identity", \.identities, .lines("the paths of files, separated by line breaks"),
                "the files of private keys, separated by line breaks, tried after the agent's keys"),
            Setting(
                "keepModes", \.keepModes, .flag,
                "`true` to keep the permissions of files, not folders. Otherwise a file gets the default permissions for new files, "
                    + "without any that its source lacks. Only the owner can read a part file"),
            Setting(
                "keepTimes", \.keepTimes, .flag,
                "`true` to keep the modification times of uploaded files, not folders; downloaded files always keep theirs"),
            Setting(
                "knownHosts", \.knownHosts, .text("the path of a file"), "a file of known servers", nil: "the user's and the system's"),
            Setting("maxConnections", \.maxConnections, .number(1...16), "the maximum number of concurrent connections, 1 to 16"),
            Setting(
                "parallelThreshold", \.parallelThreshold, .bytes(from: 1),
                "the minimum size in bytes of a file that uses several connections, 1 or more"),
            Setting(
                "partFiles", \.partFiles, .flag,
                "`false` to write files under their final names from the start, with `--overwrite always`. An incomplete file then stays on the server, even if its session is removed or cancelled with `--discard`"
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
