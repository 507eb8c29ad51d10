package import CurlEngine
package import TransferCore

/// The settings for connections to an endpoint. Their secrets are credentials of the endpoint.
package struct ConnectionSettings {
    package private(set) var options = ConnectionOptions()
    private var proxyAddress: String?
    private var proxyUser: String?
    private var proxyExceptions: [String]?
    private var clientKey: String?
    /// Whether the server's certificate is not verified.
    package private(set) var isInsecure = false

    /// The names of these settings.
    package static let names = [
        "addressFamily", "caFile", "clientCertificate", "clientKey", "httpVersion", "insecure", "interface", "pinnedPublicKeys", "proxy",
        "proxyExceptions", "proxyUser",
    ]

    package init() {}

    /// Takes a setting for connections.
    ///
    /// - Returns: Whether the setting is one of these.
    /// - Throws: A ``TransferError`` that names the valid values.
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

    /// Checks that the settings fit together. Called after all were taken.
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

    /// Returns the options of a request, with its secrets.
    ///
    /// - Parameter warn: Called with a warning for each request to an unverified server.
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

    /// How the account's settings reach the endpoint, for an error; nil with the default settings.
    var route: String? {
        var parts: [String] = []
        if let proxyAddress, !["environment", "direct"].contains(proxyAddress) { parts.append("through the proxy \(proxyAddress)") }
        if let interface = options.localInterface { parts.append("from the interface \(interface)") }
        switch options.addressFamily {
        case .any: break
        case .ipv4: parts.append("to IPv4 addresses only")
        case .ipv6: parts.append("to IPv6 addresses only")
        }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    private func list(_ text: String) -> [String] {
        text.split(whereSeparator: { $0 == "," || $0.isWhitespace }).map(String.init)
    }
}
