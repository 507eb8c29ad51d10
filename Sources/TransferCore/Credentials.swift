/// Names a secret and says what it is for; never holds the secret itself.
public struct CredentialReference: Hashable, Sendable, Codable {
    /// What a secret is used as. The list is open: a transport may define kinds of its own.
    public struct Kind: RawRepresentable, Hashable, Sendable, Codable {
        /// The name as it is stored.
        public let rawValue: String

        /// Makes a kind of a name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// An OAuth 2.0 bearer token, sent as `Authorization: Bearer …` (RFC 6750, section 2.1).
        public static let bearerToken = Kind(rawValue: "bearer")

        /// The password that goes with the user name in the endpoint's address.
        public static let password = Kind(rawValue: "password")

        /// The value of the header named by ``CredentialReference/name``.
        public static let header = Kind(rawValue: "header")

        /// What the private key of a client certificate is encrypted with, which the endpoint's settings name.
        public static let clientKeyPassphrase = Kind(rawValue: "clientKeyPassphrase")

        /// The password that goes with the user name for a proxy, which the endpoint's settings name.
        public static let proxyPassword = Kind(rawValue: "proxyPassword")
    }

    /// Where a secret is read from.
    public enum Source: Hashable, Sendable, Codable {
        /// An environment variable of this process.
        case environment(String)
        /// A file whose content, without a line break at its end, is the secret. Only its owner may be able to read it.
        case file(String)
    }

    /// What the secret is used as.
    public var kind: Kind

    /// Where the secret is read from.
    public var source: Source

    /// For the kind ``Kind/header``, the header's name; otherwise nil.
    public var name: String?

    /// Makes a reference.
    public init(kind: Kind, source: Source, name: String? = nil) {
        self.kind = kind
        self.source = source
        self.name = name
    }

    /// A bearer token.
    public static func bearer(_ source: Source) -> CredentialReference {
        CredentialReference(kind: .bearerToken, source: source)
    }

    /// A password.
    public static func password(_ source: Source) -> CredentialReference {
        CredentialReference(kind: .password, source: source)
    }

    /// A header whose value is secret.
    public static func header(_ name: String, _ source: Source) -> CredentialReference {
        CredentialReference(kind: .header, source: source, name: name)
    }
}

/// Reads the secrets that references name.
///
/// The queue hands one to each attempt. A transport asks it when a connection needs the secret, and keeps the secret no longer than that
/// connection.
public protocol CredentialProvider: Sendable {
    /// Reads a secret. Called by transports, on any executor, at most once a request.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/credentials`` that names the reference, never a value.
    func secret(for reference: CredentialReference) async throws -> Secret
}

/// A value that is never printed, encoded or compared by accident.
public struct Secret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let value: String

    /// Wraps a value.
    public init(_ value: String) {
        self.value = value
    }

    /// The value in clear, for the one place that puts it on the wire.
    public func reveal() -> String {
        value
    }

    /// Always `<redacted>`.
    public var description: String { "<redacted>" }

    /// Always `<redacted>`.
    public var debugDescription: String { "<redacted>" }

    /// A mirror without children, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
