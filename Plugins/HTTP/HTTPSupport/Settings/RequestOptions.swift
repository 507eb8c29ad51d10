package import CurlEngine
import Foundation
package import TransferCore
package import TransportSupport

/// The options for the connections and requests to an HTTP server.
public struct RequestOptions: Hashable, Sendable {
    /// A version of HTTP.
    public enum HTTPVersion: String, CaseIterable, Sendable {
        /// HTTP/1.1, one request at a time on each connection.
        case http1 = "1.1"
        /// HTTP/2 for https URLs if the server supports it, otherwise HTTP/1.1. With HTTP/2, requests to one server share a connection.
        case http2 = "2"
    }

    /// The network options: proxy, interface and kind of IP address.
    public var network: NetworkOptions

    /// A file with the certificates (PEM) to trust instead of the system's; nil for the system's.
    public var caFile: String?

    /// The only accepted public keys of the server; empty to accept any key. Each is the SHA-256 digest of a key, in base64 with 44
    /// characters (RFC 7469, section 2.4). In addition, the server's certificate must be valid.
    public var pinnedPublicKeys: [String]

    /// Whether to accept any certificate of the server. Anyone on the network path can then read and change the data, so use this option only
    /// for tests. Each request logs a warning.
    public var insecure: Bool

    /// A file with a certificate (PEM) that authenticates the client; nil for none.
    public var clientCertificate: String?

    /// A file with the private key (PEM) of ``clientCertificate``; nil if the key is in the certificate's file. A credential of the kind
    /// `clientKeyPassphrase` decrypts the key.
    public var clientKey: String?

    /// The version of HTTP.
    public var httpVersion: HTTPVersion

    /// The additional headers, by name, for each request to the origin of the address and to ``origins``. They are saved in the storage
    /// folder, so they must not contain secrets.
    public var headers: [String: String]

    /// Other trusted origins, each as `scheme://host` or `scheme://host:port`. The server may keep uploads at these origins, and may redirect to
    /// them. Requests for an upload at such an origin carry credentials and headers; requests after a redirect to another origin do not.
    public var origins: [String]

    /// The minimum size, in bytes, of files that are transferred in several segments; 1 or more. The session and the server must also allow
    /// segments.
    public var parallelThreshold: Int64

    /// Whether to save a download under the name that the server suggests (`Content-Disposition`, RFC 6266), unless the app names the file.
    /// The suggested name is reduced to one safe path component.
    public var contentDisposition: Bool

    /// Creates options. Each parameter sets the property of the same name.
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
                nil: "the file of `clientCertificate`"),
            Setting(
                "contentDisposition", \.contentDisposition, .flag,
                "`true` to save a download under the name in `Content-Disposition`; see below"),
            Setting(
                family: "header", \.headers, .anyText,
                "a header for each request to the address's origin and to the other `origins`; not a secret", check: checkHeader),
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

    /// Checks that the options are valid and do not contradict each other. Reads no files.
    ///
    /// - Throws: A `TransferError` that names the settings.
    package func validate() throws(TransferError) {
        guard clientKey == nil || clientCertificate != nil else {
            throw .invalidEndpoint("The setting clientKey requires the setting clientCertificate.")
        }
        try network.validate()
        do {
            try connection(passphrase: nil, proxyPassword: nil, warn: { _ in }).validate()
        } catch {
            throw .invalidEndpoint(error.message)
        }
    }

    /// Returns the options for the connection of a request, including secrets.
    ///
    /// - Parameter warn: Called with a warning for each request that accepts any certificate.
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

    /// The trusted origins in addition to the endpoint's; see ``origins``.
    package var trustedOrigins: Set<Origin> { Set(origins.compactMap(Origin.init(text:))) }

    var sortedHeaders: HTTPHeaders {
        headers.sorted { $0.key < $1.key }.reduce(into: HTTPHeaders()) { $0.append($1.key, $1.value) }
    }
}

extension Origin {
    /// - Parameter text: A URL without a user, path, query or fragment.
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

    /// Removes the prefix `sha256//`, which curl writes before each key (CURLOPT_PINNEDPUBLICKEY(3)).
    fileprivate static var publicKeys: Self {
        Self("keys, separated by commas") {
            $0.words.map { $0.replacing("sha256//", with: "") }
        } text: {
            $0.joined(separator: ",")
        }
    }
}
