import CurlEngine
import HTTPSupport
import TransferCore

/// An endpoint's settings, checked.
struct EndpointSettings {
    /// The settings for requests that all HTTP transports have.
    var requests = RequestSettings()

    /// Whether `PATCH` is sent under the name of `POST` from the beginning.
    var overridesMethod = false

    /// Files up to this many bytes go into the creation, where the server takes that.
    var singleRequestSize: Int64 = 1 << 20

    /// The most bytes of one `PATCH`; nil for all that remains.
    var chunkSize: Int64?

    /// All chunks but the last are a multiple of this.
    var chunkMultiple: Int64 = 1

    /// Files from this many bytes on are sent in parts, where a session asks for more than one at once.
    var parallelThreshold: Int64 = 64 << 20

    /// Whether a download is called what the server says, unless the app named it.
    var namesDownloads = false

    /// - Throws: A ``TransferError`` that names the setting that makes no sense.
    init(_ settings: [String: String]) throws(TransferError) {
        for (key, value) in settings.sorted(by: { $0.key < $1.key }) {
            if try !requests.take(key, value, reserved: .tus) { try set(key, value) }
        }
        try requests.complete()
    }

    /// What keeps chunks of this size from being a multiple of what the server stores; nil if nothing does. Then the multiple decides.
    func problem(ofChunksOf chunkSize: Int64) -> String? {
        guard chunkSize < chunkMultiple else { return nil }
        return
            "Chunks of at most \(chunkSize) bytes can't be a multiple of the setting chunkMultiple, \(chunkMultiple); make them as large at least."
    }

    private mutating func set(_ key: String, _ value: String) throws(TransferError) {
        switch key {
        case "contentDisposition": namesDownloads = try SettingsValue.choice(key, value, ["true": true, "false": false])
        case "methodOverride": overridesMethod = try SettingsValue.choice(key, value, ["true": true, "false": false])
        case "singleRequestSize": singleRequestSize = try SettingsValue.bytes(key, value, from: 0)
        case "chunkSize": chunkSize = try SettingsValue.bytes(key, value, from: 1)
        case "chunkMultiple": chunkMultiple = try SettingsValue.bytes(key, value, from: 1)
        case "parallelThreshold": parallelThreshold = try SettingsValue.bytes(key, value, from: 1)
        default:
            throw SettingsValue.invalid(
                "The setting \(key.debugDescription) is not known to the tus transport; it knows \(Self.known.joined(separator: ", ")).")
        }
    }

    private static let known =
        (RequestSettings.names + [
            "chunkMultiple", "chunkSize", "contentDisposition", "methodOverride", "parallelThreshold", "singleRequestSize",
        ]).sorted()
}

extension ReservedHeaders {
    /// The reserved headers of the tus transport, in all dialects.
    static let tus = ReservedHeaders(of: .tus, names: ["content-type", "x-http-method-override"], prefixes: ["upload-", "tus-"])
}
