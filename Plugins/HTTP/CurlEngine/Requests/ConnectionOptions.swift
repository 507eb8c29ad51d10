package import TransferCore

/// The options for the connection of a request. Requests share a connection only if all options except ``connectTimeout`` are equal.
package struct ConnectionOptions: Sendable {
    /// A file with the certificates (PEM) to trust instead of the system's certificates; nil to trust the system's certificates.
    package var certificateAuthorityFile: String?

    /// The client certificate, for servers that authenticate clients by TLS.
    package var clientCertificate: ClientCertificate?

    /// The only accepted public keys of the server; empty to accept any key. Each is the SHA-256 digest of a key's subject public key
    /// info, in base64 (RFC 7469, section 2.4). In addition, the server's certificate must be valid.
    package var pinnedPublicKeys: [String] = []

    package var proxy = Proxy.environment

    /// The network interface or local IP address of outgoing connections; nil to let the system choose.
    package var localInterface: String?

    package var addressFamily = AddressFamily.any

    package var httpVersion = HTTPVersion.http1

    package var verification = ServerVerification.required

    /// The time limit for establishing a connection, including TLS; nil for ``CurlEngine/Configuration/connectTimeout``.
    package var connectTimeout: Duration?

    /// Creates the default options: TLS 1.2 or later with verification, HTTP/1.1, and the proxy from the environment.
    package init() {}

    package enum AddressFamily: Hashable, Sendable {
        /// IPv6 and IPv4, whichever connects first (RFC 8305).
        case any
        case ipv4
        case ipv6
    }

    package enum HTTPVersion: Hashable, Sendable {
        /// HTTP/1.1, one request at a time on each connection.
        case http1
        /// HTTP/2 for https URLs if the server supports it, otherwise HTTP/1.1. With HTTP/2, requests to one server share a connection.
        case http2
    }
}

/// A certificate that authenticates the client to a server, with its private key.
package struct ClientCertificate: Sendable {
    /// The file with the certificate (PEM), followed by the certificates of its issuers if the server needs them.
    package var certificateFile: String

    /// The file with the private key (PEM); nil if the key is in ``certificateFile``.
    package var keyFile: String?

    /// The passphrase of the private key; nil if the key is not encrypted.
    package var passphrase: Secret?

    package init(certificateFile: String, keyFile: String? = nil, passphrase: Secret? = nil) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.passphrase = passphrase
    }
}

/// The verification of a server's certificate.
package struct ServerVerification: Sendable {
    /// The certificate must be valid, trusted, and issued for the server's name.
    package static let required = ServerVerification(warn: nil)

    /// Accepts any certificate, so anyone on the network path can read and change the data. ``ConnectionOptions/pinnedPublicKeys`` still
    /// apply.
    ///
    /// - Parameter warn: Called with a warning for each request, on the caller's executor. Show the warning to the user.
    package static func insecure(warn: @escaping @Sendable (_ message: String) -> Void) -> ServerVerification {
        ServerVerification(warn: warn)
    }

    let warn: (@Sendable (String) -> Void)?

    var isRequired: Bool { warn == nil }
}

/// The proxy for connections to servers.
package struct Proxy: Sendable {
    enum Choice: Hashable {
        case environment
        case direct
        case url(String)
        /// The value of an environment variable. The value may lack a scheme and contain a password.
        case variableValue(String)
    }

    let choice: Choice
    var userName: String?
    var password: Secret?
    var exceptions: [String]?

    /// The proxy in `http_proxy`, `HTTPS_PROXY` or `ALL_PROXY`, if set, except for hosts in `NO_PROXY` (libcurl-env(3)).
    package static let environment = Proxy(choice: .environment)

    /// No proxy, even if the environment names one.
    package static let direct = Proxy(choice: .direct)

    /// The text that follows "The proxy" in error messages; nil for ``direct``.
    package var descriptionForMessages: String? {
        switch choice {
        case .environment, .variableValue: "from the environment"
        case .direct: nil
        // `validate()` rejects a URL with a user name or password.
        case .url(let url): url
        }
    }

    /// Creates a proxy with a URL.
    ///
    /// - Parameters:
    ///   - url: The URL of the proxy, without a user name. Its scheme is `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`. With
    ///     `socks4a` and `socks5h`, the proxy resolves host names.
    ///   - userName: The user name for the proxy.
    ///   - password: The password of the user.
    ///   - exceptions: The hosts, domains, IP addresses and networks (CIDR) that bypass the proxy; nil for the value of `NO_PROXY`.
    package static func url(_ url: String, userName: String? = nil, password: Secret? = nil, exceptions: [String]? = nil) -> Proxy {
        Proxy(choice: .url(url), userName: userName, password: password, exceptions: exceptions)
    }
}
