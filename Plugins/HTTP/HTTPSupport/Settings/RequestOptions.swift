package import CurlEngine
import Foundation
package import TransferCore
package import TransportSupport

/// The requests to a server that speaks HTTP: how connections are made, and what all requests have in common.
public struct RequestOptions: Hashable, Sendable {
    /// A version of HTTP.
    public enum HTTPVersion: String, CaseIterable, Sendable {
        /// HTTP/1.1, one request at a time on each connection.
        case http1 = "1.1"
        /// HTTP/2 if a TLS server supports it, else HTTP/1.1. Requests to one server then share a connection.
        case http2 = "2"
    }

    /// How the server is reached.
    public var network: NetworkOptions

    /// A file with the certificates (PEM) to trust instead of the system's; nil for the system's.
    public var caFile: String?

    /// The only public keys that the server may have, each as the base64 form of its SHA-256 with 44 characters (RFC 7469, section 2.4); empty
    /// for any key. Certificates are verified in addition.
    public var pinnedPublicKeys: [String]

    /// Whether to accept any certificate of the server, so that anyone on the way can read and change the data: for tests. Logs a warning for each
    /// request.
    public var insecure: Bool

    /// A file with a certificate (PEM) that authenticates the client; nil for none.
    public var clientCertificate: String?

    /// A file with the private key (PEM) of ``clientCertificate``; nil if the key is in the certificate's file. A credential of the kind
    /// `clientKeyPassphrase` decrypts the key.
    public var clientKey: String?

    /// The version of HTTP.
    public var httpVersion: HTTPVersion

    /// Additional headers, by name, for each request to the origin of the address and to ``origins``. The store keeps them, so they must not
    /// contain secrets.
    public var headers: [String: String]

    /// Other trusted origins, each as `scheme://host:port`: the server may keep uploads there, and redirects may lead there. They get credentials
    /// and headers with an upload; a redirected request carries no credentials.
    public var origins: [String]

    /// The size in bytes from which a file is transferred in several segments, if a session asks for that and the server supports it; 1 or more.
    public var parallelThreshold: Int64

    /// Whether the server names a download (`Content-Disposition`, RFC 6266), unless the app does. The name is reduced to one safe name.
    public var contentDisposition: Bool

    /// Makes options. Each parameter is the property of the same name.
    public init(
        network: NetworkOptions = NetworkOptions(), caFile: String? = nil, pinnedPublicKeys: [String] = [], insecure: Bool = false,
        clientCertificate: String? = nil, clientKey: String? = nil, httpVersion: HTTPVersion = .http1, headers: [String: String] = [:],
        origins: [String] = [], parallelThreshold: Int64 = 64 << 20, contentDisposition: Bool = false
    ) {
        self.network = network
        self.caFile = caFile
        self.pinnedPublicKeys = pinnedPublicKeys
        self.insecure = insecure
        self.clientCertificate = clientCertificate
        self.clientKey = clientKey
        self.httpVersion = httpVersion
        self.headers = headers
        self.origins = origins
        self.parallelThreshold = parallelThreshold
        self.contentDisposition = contentDisposition
    }
}

extension RequestOptions {
    /// The settings for these options.
    ///
    /// - Parameter checkHeader: Checks the name and the value of a header.
    package static func settings(
        checkHeader: @escaping @Sendable (String, String) throws(TransferError) -> Void
    ) -> [Setting<RequestOptions>] {
        NetworkOptions.settings(proxy: .environment).map { $0.within(\.network) } + [
            Setting(
                "caFile", \.caFile, .text("the path of a file"), "a file with the certificates (PEM) to trust instead of the system's",
                nil: "the system's"),
            Setting(
                "clientCertificate", \.clientCertificate, .text("the path of a file"),
                "a file with a certificate (PEM) that identifies the client"),
            Setting(
                "clientKey", \.clientKey, .text("the path of a file"), "a file with the certificate's key, if it is in another file",
                nil: "that of `clientCertificate`"),
            Setting(
                "contentDisposition", \.contentDisposition, .flag,
                "`true` to name a download as the server's `Content-Disposition` does, see below"),
            Setting(
                family: "header", \.headers, .anyText,
                "a header for each request to the address's origin and to those of `origins`; not a secret", check: checkHeader),
            Setting("httpVersion", \.httpVersion, .choice, "`1.1` or `2`"),
            Setting("insecure", \.insecure, .flag, "`true` to accept any certificate of the server: for tests"),
            Setting(
                "origins", \.origins, .origins, "other trusted origins, `scheme://host:port` separated by spaces or commas"),
            Setting(
                "parallelThreshold", \.parallelThreshold, .bytes(from: 1),
                "the minimum size in bytes of a file that uses several segments, 1 or more"),
            Setting(
                "pinnedPublicKeys", \.pinnedPublicKeys, .publicKeys,
                "the only accepted public keys of the server, as base64 of their SHA-256 (44 characters), separated by commas", empty: "any"
            ),
        ]
    }

    /// Checks that the options fit together.
    ///
    /// - Throws: A `TransferError` that names the settings.
    package func validate() throws(TransferError) {
        guard clientKey == nil || clientCertificate != nil else {
            throw .invalidEndpoint("The setting clientKey needs the setting clientCertificate.")
        }
        try network.validate()
        do {
            try connection(passphrase: nil, proxyPassword: nil, warn: { _ in }).validate()
        } catch {
            throw .invalidEndpoint(error.message)
        }
    }

    /// Returns the options of a request's connection, with its secrets.
    ///
    /// - Parameter warn: Called with a warning for each request to an unverified server.
    package func connection(
        passphrase: Secret?, proxyPassword: Secret?, warn: @escaping @Sendable (String) -> Void
    ) -> ConnectionOptions {
        var options = ConnectionOptions()
        network.apply(to: &options, proxyPassword: proxyPassword, otherwise: .environment)
        options.certificateAuthorityFile = caFile
        options.pinnedPublicKeys = pinnedPublicKeys
        options.clientCertificate = clientCertificate.map {
            ClientCertificate(certificateFile: $0, keyFile: clientKey, passphrase: passphrase)
        }
        options.httpVersion =
            switch httpVersion {
            case .http1: .http1
            case .http2: .http2
            }
        if insecure { options.verification = .insecure(warn: warn) }
        return options
    }

    /// The origins besides the endpoint's own that get credentials and configured headers, and that redirects may lead to.
    package var trustedOrigins: Set<Origin> { Set(origins.compactMap(Origin.init(text:))) }

    /// The additional headers, sorted by name.
    var sortedHeaders: HTTPHeaders {
        headers.sorted { $0.key < $1.key }.reduce(into: HTTPHeaders()) { $0.append($1.key, $1.value) }
    }
}

extension Origin {
    /// - Parameter text: A URL without a user, a path and a query.
    fileprivate init?(text: String) {
        guard let components = URLComponents(string: text), components.path.isEmpty || components.path == "/", components.query == nil,
            components.fragment == nil, components.user == nil, components.password == nil
        else { return nil }
        guard let url = components.url else { return nil }
        self.init(url)
    }
}

extension SettingFormat<[String]> {
    fileprivate static var origins: Self {
        Self("each origin as scheme://host or scheme://host:port", isSecret: true) { text in
            text.words.allSatisfy { Origin(text: $0) != nil } ? text.words : nil
        } text: {
            $0.joined(separator: " ")
        }
    }

    /// The form of other programs has a prefix (RFC 7469, section 2.1).
    fileprivate static var publicKeys: Self {
        Self("keys, separated by commas") {
            $0.words.map { $0.replacing("sha256//", with: "") }
        } text: {
            $0.joined(separator: ",")
        }
    }
}
