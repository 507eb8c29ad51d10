package import CurlEngine
package import TransferCore

/// How connections to an endpoint are made, as its settings say. The secrets for them are credentials of the endpoint.
package struct ConnectionSettings {
    package private(set) var options = ConnectionOptions()
    private var proxyAddress: String?
    private var proxyUser: String?
    private var proxyExceptions: [String]?
    private var clientKey: String?
    /// Whether the server's certificate is not looked at.
    package private(set) var isInsecure = false

    /// The settings that it takes.
    package static let names = [
        "addressFamily", "caFile", "clientCertificate", "clientKey", "httpVersion", "insecure", "interface", "pinnedPublicKeys", "proxy",
        "proxyExceptions", "proxyUser",
    ]

    package init() {}

    /// Takes a setting that is about connections.
    ///
    /// - Returns: Whether it is one.
    /// - Throws: A ``TransferError`` that says what the value may be.
    package mutating func take(_ name: String, _ value: String) throws(TransferError) -> Bool {
        switch name {
        case "caFile": options.certificateAuthorityFile = value
        case "clientCertificate": options.clientCertificate = ClientCertificate(certificateFile: value)
        case "clientKey": clientKey = value
        case "pinnedPublicKeys": options.pinnedPublicKeys = list(value).map { $0.replacing("sha256//", with: "") }
        case "interface": options.localInterface = value
        case "proxy": proxyAddress = value
        case "proxyUser": proxyUser = value
        case "proxyExceptions": proxyExceptions = list(value)
        case "httpVersion":
            options.httpVersion = try SettingsValue.choice(name, value, ["1.1": .http1, "2": .http2])
        case "addressFamily":
            options.addressFamily = try SettingsValue.choice(name, value, ["any": .any, "ipv4": .ipv4, "ipv6": .ipv6])
        case "insecure": isInsecure = try SettingsValue.choice(name, value, ["true": true, "false": false])
        default: return false
        }
        return true
    }

    /// Checks what settings mean together. Called once all are taken.
    package mutating func complete() throws(TransferError) {
        if let clientKey {
            guard options.clientCertificate != nil else {
                throw SettingsValue.invalid("The setting clientKey needs the setting clientCertificate.")
            }
            options.clientCertificate?.keyFile = clientKey
        }
        guard proxyAddress != nil || (proxyUser == nil && proxyExceptions == nil) else {
            throw SettingsValue.invalid("The settings proxyUser and proxyExceptions need the setting proxy.")
        }
        do {
            try options(passphrase: nil, proxyPassword: nil, warn: { _ in }).validate()
        } catch {
            throw SettingsValue.invalid(error.message)
        }
    }

    /// The options of a request, with the secrets for it.
    ///
    /// - Parameter warn: Told at each request whose server is not verified.
    package func options(
        passphrase: Secret?, proxyPassword: Secret?, warn: @escaping @Sendable (String) -> Void
    ) -> ConnectionOptions {
        var options = options
        options.clientCertificate?.passphrase = passphrase
        switch proxyAddress {
        case nil, "environment": options.proxy = .environment
        case "direct": options.proxy = .direct
        case let address?: options.proxy = .url(address, userName: proxyUser, password: proxyPassword, exceptions: proxyExceptions)
        }
        if isInsecure { options.verification = .insecure(warn: warn) }
        return options
    }

    /// How the endpoint is reached, in words for an error; nil where that is the usual way.
    var way: String? {
        var ways: [String] = []
        if let proxyAddress, !["environment", "direct"].contains(proxyAddress) { ways.append("by way of the proxy \(proxyAddress)") }
        if let interface = options.localInterface { ways.append("from the interface \(interface)") }
        switch options.addressFamily {
        case .any: break
        case .ipv4: ways.append("at IPv4 addresses only")
        case .ipv6: ways.append("at IPv6 addresses only")
        }
        return ways.isEmpty ? nil : ways.joined(separator: ", ")
    }

    private func list(_ text: String) -> [String] {
        text.split(whereSeparator: { $0 == "," || $0.isWhitespace }).map(String.init)
    }
}
