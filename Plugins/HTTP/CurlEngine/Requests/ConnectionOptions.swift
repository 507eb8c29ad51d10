public import TransferCore

/// How connections for a request are made. Requests share a connection only if all of this is the same.
public struct ConnectionOptions: Sendable {
    /// A file with the certificates (PEM) to trust instead of the system's.
    public var certificateAuthorityFile: String?

    /// Who we are, for servers that want to know by TLS.
    public var clientCertificate: ClientCertificate?

    /// The only public keys that the server may have, each as the base64 form of the SHA-256 of its subject public key info (RFC 7469, section
    /// 2.4); none for no such limit. Certificates are verified besides.
    public var pinnedPublicKeys: [String] = []

    /// By way of which proxy the server is reached.
    public var proxy = Proxy.environment

    /// The name of the network interface, or the local IP address, that connections leave from; nil for what the system chooses.
    public var localInterface: String?

    /// Which kind of IP address of the server may be used.
    public var addressFamily = AddressFamily.any

    /// Which version of HTTP is spoken.
    public var httpVersion = HTTPVersion.http1

    /// Whether the server has to prove who it is.
    public var verification = ServerVerification.required

    /// How long a connection may take to be made, TLS included; nil for ``CurlEngine/Configuration/connectTimeout``.
    public var connectTimeout: Duration?

    /// Makes the default options: verified TLS 1.2 or later, HTTP/1.1, the proxy that the environment names.
    public init() {}

    /// A kind of IP address.
    public enum AddressFamily: Hashable, Sendable {
        /// IPv6 and IPv4, whichever connects first (RFC 8305).
        case any
        /// IPv4 only.
        case ipv4
        /// IPv6 only.
        case ipv6
    }

    /// A version of HTTP.
    public enum HTTPVersion: Hashable, Sendable {
        /// HTTP/1.1, one request at a time on each connection.
        case http1
        /// HTTP/2 where a TLS server agrees to it, else HTTP/1.1. Requests to one server then share a connection.
        case http2
    }
}

/// A certificate that shows a server who we are, with its private key.
public struct ClientCertificate: Sendable {
    /// The file with the certificate (PEM), and with those of its issuers below it if the server needs them.
    public var certificateFile: String

    /// The file with the private key (PEM), or nil if it is in ``certificateFile``.
    public var keyFile: String?

    /// What the private key is encrypted with, or nil if it is not.
    public var passphrase: Secret?

    /// Names a certificate.
    public init(certificateFile: String, keyFile: String? = nil, passphrase: Secret? = nil) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.passphrase = passphrase
    }
}

/// Whether a server has to prove who it is.
public struct ServerVerification: Sendable {
    /// Its certificate must be valid, for its name, and trusted.
    public static let required = ServerVerification(warn: nil)

    /// Any certificate will do, so that anybody on the way can read and change everything. ``ConnectionOptions/pinnedPublicKeys`` still count.
    ///
    /// - Parameter warn: Told so at each request, on the caller's executor; has to bring it before a person.
    public static func insecure(warn: @escaping @Sendable (_ message: String) -> Void) -> ServerVerification {
        ServerVerification(warn: warn)
    }

    let warn: (@Sendable (String) -> Void)?

    var isRequired: Bool { warn == nil }
}

/// By way of which proxy servers are reached.
public struct Proxy: Sendable {
    enum Choice: Hashable {
        case environment
        case direct
        case url(String)
        /// What a variable of the environment says, which may lack a scheme and have a password in it.
        case variable(String)
    }

    let choice: Choice
    var userName: String?
    var password: Secret?
    var exceptions: [String]?

    /// The one that `http_proxy`, `HTTPS_PROXY` or `ALL_PROXY` names, if any, but not for what `NO_PROXY` lists (libcurl-env(3)).
    public static let environment = Proxy(choice: .environment)

    /// None, whatever the environment says.
    public static let direct = Proxy(choice: .direct)

    /// What errors call it; nil for none.
    package var name: String? {
        switch choice {
        case .environment, .variable: "that the environment names"
        case .direct: nil
        // It has no user name in it.
        case .url(let url): url
        }
    }

    /// A certain proxy.
    ///
    /// - Parameters:
    ///   - url: Its URL: `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h` (which lets the proxy resolve names), without user name.
    ///   - userName: Who we are there.
    ///   - password: The password that goes with the user name.
    ///   - exceptions: Names of hosts and domains, IP addresses and networks (CIDR) that are reached without the proxy; nil for those that
    ///     `NO_PROXY` lists.
    public static func url(_ url: String, userName: String? = nil, password: Secret? = nil, exceptions: [String]? = nil) -> Proxy {
        Proxy(choice: .url(url), userName: userName, password: password, exceptions: exceptions)
    }
}
