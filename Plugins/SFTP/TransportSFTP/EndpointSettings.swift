import TransferCore

/// What an endpoint's address and settings say.
struct EndpointSettings: Sendable {
    /// How the server is known.
    enum HostKey: Hashable, Sendable {
        case strict
        case acceptNew
        /// The SHA-256 of the only key, as OpenSSH writes it.
        case pinned(String)
    }

    let address: SFTPAddress
    private(set) var maximumConnections = 2
    private(set) var hostKey = HostKey.strict
    /// Nil for the user's and the system's.
    private(set) var knownHosts: String?
    private(set) var identities: [String] = []
    /// Nil for what the environment says; empty for none.
    private(set) var agent: String?
    private(set) var allowsSHA1 = false
    let password: CredentialReference?
    let passphrase: CredentialReference?

    private static let known = ["agent", "allowSHA1", "hostKey", "identity", "knownHosts", "maxConnections"]

    /// - Throws: A ``TransferError`` with the code `invalidEndpoint`, or of the class `unsupported` for a credential of another kind.
    init(_ endpoint: Endpoint) throws(TransferError) {
        address = try SFTPAddress(endpoint)
        password = endpoint.credentials.first { $0.kind == .password }
        passphrase = endpoint.credentials.first { $0.kind == .keyPassphrase }
        for credential in endpoint.credentials where credential.kind != .password && credential.kind != .keyPassphrase {
            throw TransferError(
                .unsupported, .unsupported, "The SFTP transport has no use for a credential of the kind \(credential.kind.rawValue).")
        }
        for (name, value) in endpoint.settings { try take(name, value) }
    }

    private mutating func take(_ name: String, _ value: String) throws(TransferError) {
        switch name {
        case "agent": agent = value == "environment" ? nil : value == "none" ? "" : value
        case "identity": identities = value.split(whereSeparator: \.isNewline).map(String.init)
        case "knownHosts": knownHosts = value
        case "allowSHA1":
            guard value == "true" || value == "false" else { throw Self.invalid(name, value, "true or false") }
            allowsSHA1 = value == "true"
        case "maxConnections":
            guard let number = Int(value), (1...16).contains(number) else { throw Self.invalid(name, value, "a number from 1 to 16") }
            maximumConnections = number
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
                "The setting \(name.debugDescription) is not known to the SFTP transport; it knows \(Self.known.joined(separator: ", ")).")
        }
    }

    private static func invalid(_ name: String, _ value: String, _ choices: String) -> TransferError {
        TransferError(.permanent, .invalidEndpoint, "The setting \(name) is \(value.debugDescription); write \(choices).")
    }
}
