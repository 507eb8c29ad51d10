package import CurlEngine
package import TransferCore
package import TransportSupport

/// The network options of an endpoint: proxy, interface and kind of IP address.
public struct NetworkOptions: Hashable, Sendable {
    /// The proxy to use.
    public enum Proxy: Hashable, Sendable {
        /// The proxy from the environment variables `https_proxy`, `http_proxy` or `all_proxy`, except for the hosts in `no_proxy`
        /// (libcurl-env(3)). SFTP uses only `all_proxy` and `no_proxy`.
        case environment
        /// No proxy.
        case direct
        /// The proxy with this URL. The scheme is `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`. The URL has no user name.
        case url(String)
    }

    /// The kind of IP address to use.
    public enum AddressFamily: String, CaseIterable, Sendable {
        /// IPv6 and IPv4, whichever connects first (RFC 8305).
        case any
        /// IPv4 only.
        case ipv4
        /// IPv6 only.
        case ipv6
    }

    /// The proxy; nil for the transport's default. HTTP defaults to ``Proxy/environment``, and SFTP to ``Proxy/direct``.
    public var proxy: Proxy?

    /// The user name for a proxy with a URL; nil if the proxy needs no user name. A credential of the kind `proxyPassword` contains the
    /// password.
    public var proxyUser: String?

    /// The hosts, domains, IP addresses and networks (CIDR) that bypass a proxy with a URL; nil for the value of `no_proxy`.
    public var proxyExceptions: [String]?

    /// The network interface or local IP address of outgoing connections; nil to let the system choose.
    public var interface: String?

    /// The kind of IP address to use.
    public var addressFamily: AddressFamily

    /// Creates options. Each parameter sets the property of the same name.
    public init(
        proxy: Proxy? = nil, proxyUser: String? = nil, proxyExceptions: [String]? = nil, interface: String? = nil,
        addressFamily: AddressFamily = .any
    ) {
        self.proxy = proxy
        self.proxyUser = proxyUser
        self.proxyExceptions = proxyExceptions
        self.interface = interface
        self.addressFamily = addressFamily
    }
}

extension NetworkOptions {
    /// The settings for these options.
    ///
    /// - Parameter proxy: The transport's default for the proxy.
    package static func settings(proxy: Proxy) -> [Setting<NetworkOptions>] {
        let proxyFormat = SettingFormat<Proxy>("the URL of a proxy, environment or direct", parse: Proxy.init, text: \.text)
        return [
            Setting("addressFamily", \.addressFamily, .choice, "`any`, `ipv4` or `ipv6`"),
            Setting(
                "interface", \.interface, .text("the name of a network interface or a local address"),
                "the network interface or local address of outgoing connections", nil: "chosen by the system"),
            Setting("proxy", \.proxy, proxyFormat, "a proxy's URL, `environment` or `direct`", nil: "`\(proxy.text)`"),
            Setting(
                "proxyExceptions", \.proxyExceptions, .list, "hosts that bypass the proxy, separated by commas",
                nil: "the hosts in `no_proxy`"),
            Setting(
                "proxyUser", \.proxyUser, .text("the name of a user"), "the user at the proxy; the password is a credential"),
        ]
    }

    /// Checks that the options are valid and do not contradict each other.
    ///
    /// - Throws: A `TransferError` that names the settings.
    package func validate() throws(TransferError) {
        guard proxy != nil || (proxyUser == nil && proxyExceptions == nil) else {
            throw .invalidEndpoint("The settings proxyUser and proxyExceptions require the \"proxy\" setting.")
        }
        var options = ConnectionOptions()
        apply(to: &options, proxyPassword: nil, otherwise: .direct)
        do { try options.validate() } catch { throw .invalidEndpoint(error.message) }
    }

    /// Sets the proxy, the interface and the kind of IP address in the options of a connection.
    ///
    /// - Parameters:
    ///   - proxyPassword: The password for the proxy; nil for none.
    ///   - standard: The transport's default for the proxy.
    package func apply(to options: inout ConnectionOptions, proxyPassword: Secret?, otherwise standard: Proxy) {
        options.proxy =
            switch proxy ?? standard {
            case .environment: .environment
            case .direct: .direct
            case .url(let url): .url(url, userName: proxyUser, password: proxyPassword, exceptions: proxyExceptions)
            }
        options.localInterface = interface
        options.addressFamily =
            switch addressFamily {
            case .any: .any
            case .ipv4: .ipv4
            case .ipv6: .ipv6
            }
    }

    /// A description, for error messages, of the proxy URL, interface and kind of IP address; nil if none of them is set.
    var route: String? {
        var parts: [String] = []
        if case .url(let url) = proxy { parts.append("through the proxy \(url)") }
        if let interface { parts.append("from the interface \(interface)") }
        switch addressFamily {
        case .any: break
        case .ipv4: parts.append("to IPv4 addresses only")
        case .ipv6: parts.append("to IPv6 addresses only")
        }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }
}

extension NetworkOptions.Proxy {
    fileprivate init(_ text: String) {
        switch text {
        case "environment": self = .environment
        case "direct": self = .direct
        default: self = .url(text)
        }
    }

    fileprivate var text: String {
        switch self {
        case .environment: "environment"
        case .direct: "direct"
        case .url(let url): url
        }
    }
}
