package import CurlEngine
package import TransferCore

/// The settings for requests that all HTTP transports have.
package struct RequestSettings: Sendable {
    /// How connections are made.
    package private(set) var connection = ConnectionSettings()
    /// Headers for each request to a trusted origin.
    package private(set) var headers = HTTPHeaders()
    /// Origins besides the endpoint's own that get credentials and configured headers, and that redirects may lead to.
    package private(set) var origins: Set<Origin> = []
    /// The minimum size in bytes of a file that is transferred in several segments, if a session asks for that.
    package private(set) var parallelThreshold: Int64 = 64 << 20
    /// Whether the server names a download (`Content-Disposition`), unless the app does.
    package private(set) var namesDownloads = false

    /// The names of these settings.
    package static let names = ConnectionSettings.names + ["contentDisposition", "header.NAME", "origins", "parallelThreshold"]

    package init() {}

    /// Takes a setting for requests.
    ///
    /// - Parameter reserved: The headers that settings can't set.
    /// - Returns: Whether the setting is one of these.
    /// - Throws: A `TransferError` that names the setting and its valid values.
    package mutating func take(_ key: String, _ value: String, reserved: ReservedHeaders) throws(TransferError) -> Bool {
        switch key {
        case "contentDisposition": namesDownloads = try SettingsValue.choice(key, value, ["true": true, "false": false])
        case "origins": origins = try SettingsValue.origins(value)
        case "parallelThreshold": parallelThreshold = try SettingsValue.bytes(key, value, from: 1)
        case _ where key.hasPrefix("header."):
            let name = String(key.dropFirst("header.".count))
            try reserved.check(name, value)
            headers.append(name, value)
        default: return try connection.take(key, value)
        }
        return true
    }

    /// Checks that the settings fit together. Called after all were taken.
    package mutating func complete() throws(TransferError) { try connection.complete() }
}
