import HTTPSupport
import TransferCore

/// An endpoint's settings, checked.
struct SFTPSettings: Sendable {
    /// How the server is recognized.
    enum HostKey: Hashable, Sendable {
        case strict
        case acceptNew
        /// The SHA-256 of the only valid key, as OpenSSH writes it.
        case pinned(String)
    }

    let address: SFTPAddress
    private(set) var maximumConnections = 2
    private(set) var hostKey = HostKey.strict
    /// Nil for the files of the user and the system.
    private(set) var knownHosts: String?
    private(set) var identities: [String] = []
    /// Nil for the agent in the environment; empty for none.
    private(set) var agent: String?
    private(set) var allowsSHA1 = false
    /// Whether an uploaded file gets the modification time of its source. A downloaded file always does.
    private(set) var keepsTimes = false
    /// Whether a file gets the permissions of its source.
    private(set) var keepsModes = false
    /// Whether a file is written as a part file until it is complete.
    private(set) var usesParts = true
    /// Whether the server is asked to sync files, if it supports that.
    private(set) var syncs = true
    /// The minimum size of a file that is sent in ranges over several connections, if a session asks for more than one.
    private(set) var parallelThreshold: Int64 = 64 << 20
    private(set) var route = ServerRoute.direct
    let password: CredentialReference?
    let passphrase: CredentialReference?

    private static let own: Set<String> = [
        "agent", "allowSHA1", "hostKey", "identity", "keepModes", "keepTimes", "knownHosts", "maxConnections", "parallelThreshold",
        "partFiles", "proxyCommand", "sync",
    ]
    private static let credentials: Set<CredentialReference.Kind> = [.password, .keyPassphrase, .proxyPassword]

    /// - Throws: A ``TransferError`` with the code `invalidEndpoint`, or of the class `unsupported` for a credential of another kind.
    init(_ endpoint: Endpoint) throws(TransferError) {
        address = try SFTPAddress(endpoint)
        password = endpoint.credentials.first { $0.kind == .password }
        passphrase = endpoint.credentials.first { $0.kind == .keyPassphrase }
        for credential in endpoint.credentials where !Self.credentials.contains(credential.kind) {
            throw TransferError(
                .unsupported, .unsupported, "The SFTP transport has no use for a credential of the kind \(credential.kind.rawValue).")
        }
        for (name, value) in endpoint.settings where !ServerRoute.connectionSettings.contains(name) { try take(name, value) }
        try takeConnection(endpoint)
    }

    private mutating func takeConnection(_ endpoint: Endpoint) throws(TransferError) {
        let given = endpoint.settings.filter { ServerRoute.connectionSettings.contains($0.key) }
        guard !given.isEmpty else { return }
        guard case .direct = route else {
            throw TransferError(
                .permanent, .invalidEndpoint,
                "The setting proxyCommand can't be combined with \(given.keys.sorted().joined(separator: ", ")).")
        }
        var connection = ConnectionSettings()
        for (name, value) in given.sorted(by: { $0.key < $1.key }) { _ = try connection.take(name, value) }
        try connection.complete()
        route = .connection(connection, proxyPassword: endpoint.credentials.first { $0.kind == .proxyPassword })
    }

    private mutating func take(_ name: String, _ value: String) throws(TransferError) {
        switch name {
        case "agent": agent = value == "environment" ? nil : value == "none" ? "" : value
        case "identity": identities = value.split(whereSeparator: \.isNewline).map(String.init)
        case "knownHosts": knownHosts = value
        case "allowSHA1": allowsSHA1 = try Self.truth(name, value)
        case "keepTimes": keepsTimes = try Self.truth(name, value)
        case "keepModes": keepsModes = try Self.truth(name, value)
        case "partFiles": usesParts = try Self.truth(name, value)
        case "sync": syncs = try Self.truth(name, value)
        case "parallelThreshold":
            guard let number = Int64(value), number > 0 else { throw Self.invalid(name, value, "a number of bytes, 1 or more") }
            parallelThreshold = number
        case "maxConnections":
            guard let number = Int(value), (1...16).contains(number) else { throw Self.invalid(name, value, "a number from 1 to 16") }
            maximumConnections = number
        case "proxyCommand":
            try ServerRoute.check(value, address)
            route = .command(value)
        case "hostKey":
            switch value {
            case "strict": hostKey = .strict
            case "accept-new": hostKey = .acceptNew
            case _ where value.hasPrefix("SHA256:"): hostKey = .pinned(value)
            default: throw Self.invalid(name, value, "strict, accept-new, or SHA256: and a fingerprint")
            }
        default:
            throw TransferError(
                .permanent, .invalidEndpoint,
                "The setting \(name.debugDescription) is unknown to the SFTP transport; valid settings are \(Self.own.union(ServerRoute.connectionSettings).sorted().joined(separator: ", "))."
            )
        }
    }

    private static func truth(_ name: String, _ value: String) throws(TransferError) -> Bool {
        guard value == "true" || value == "false" else { throw invalid(name, value, "true or false") }
        return value == "true"
    }

    private static func invalid(_ name: String, _ value: String, _ choices: String) -> TransferError {
        TransferError(.permanent, .invalidEndpoint, "The setting \(name) is \(value.debugDescription); write \(choices).")
    }
}
