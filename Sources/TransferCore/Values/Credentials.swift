/// A reference to a secret, with its purpose. Never contains the secret itself.
public struct CredentialReference: Hashable, Sendable, Codable {
    /// The purpose of a secret. The list is not exhaustive: a transport can define its own kinds.
    public struct Kind: RawRepresentable, Hashable, Sendable, Codable {
        /// The name as it is stored.
        public let rawValue: String

        /// Creates a kind from a name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// An OAuth 2.0 bearer token, sent as `Authorization: Bearer …` (RFC 6750, section 2.1).
        public static let bearerToken = Kind(rawValue: "bearer")

        /// The password for the user name in the endpoint's address.
        public static let password = Kind(rawValue: "password")

        /// The value of the header named by ``CredentialReference/name``.
        public static let header = Kind(rawValue: "header")

        /// The passphrase for the private key of the client certificate in the endpoint's settings.
        public static let clientKeyPassphrase = Kind(rawValue: "clientKeyPassphrase")

        /// The password for the proxy user in the endpoint's settings.
        public static let proxyPassword = Kind(rawValue: "proxyPassword")
    }

    /// The location of a secret.
    public enum Source: Hashable, Sendable, Codable {
        /// An environment variable of this process.
        case environment(String)
        /// A file that contains the secret. Line breaks before and after the secret are ignored. The group and other users must not have
        /// any permissions for the file.
        case file(String)
        /// A secret that the app of this process supplies under this name, for example from memory or from the system's keyring.
        case app(String)
        /// A secret in the memory of this process; see ``value(_:)``.
        case memory(MemorySecret)

        /// A secret that the app has in memory. The queue never stores it.
        ///
        /// ```swift
        /// let key = CredentialReference.header("X-Api-Key", .value(Secret(apiKey)))
        /// ```
        ///
        /// The secret is lost when the process ends. So the app must save the account again each time it opens the queue. Until then, the
        /// account is blocked, and its sessions wait.
        public static func value(_ secret: Secret) -> Source {
            .memory(MemorySecret(secret))
        }
    }

    /// The purpose of the secret.
    public var kind: Kind

    /// The location of the secret.
    public var source: Source

    /// The header's name, for the kind ``Kind/header``; otherwise nil.
    public var name: String?

    /// Creates a reference.
    public init(kind: Kind, source: Source, name: String? = nil) {
        self.kind = kind
        self.source = source
        self.name = name
    }

    /// A reference to a bearer token.
    public static func bearer(_ source: Source) -> CredentialReference {
        CredentialReference(kind: .bearerToken, source: source)
    }

    /// A reference to a password.
    public static func password(_ source: Source) -> CredentialReference {
        CredentialReference(kind: .password, source: source)
    }

    /// A reference to the secret value of a header.
    public static func header(_ name: String, _ source: Source) -> CredentialReference {
        CredentialReference(kind: .header, source: source, name: name)
    }
}

/// Reads secrets by their references.
///
/// The queue passes a provider to each attempt. A transport reads a secret when a connection needs it, and keeps it no longer than the connection.
public protocol CredentialProvider: Sendable {
    /// Reads a secret. Transports call this method on any executor, at most once per request.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/credentials`` that names the reference, never a value. Such an error
    ///   blocks the account, unless the account allows the queue to try another endpoint. If the secret may soon be readable, throw an error
    ///   of the class ``FailureClass/transient``, and the queue retries the attempt.
    func secret(for reference: CredentialReference) async throws -> Secret
}

/// A secret value. Its description is redacted, and it can't be encoded or compared.
public struct Secret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let value: String

    /// Creates a secret.
    public init(_ value: String) {
        self.value = value
    }

    /// Returns the value, for the code that sends it.
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
