import CurlEngine
import HTTPSupport
import TransferCore

/// An endpoint's settings, checked.
struct TUSSettings {
    /// The settings for requests that all HTTP transports have.
    var requests = RequestSettings()

    /// Whether `PATCH` is sent as `POST` from the start.
    var overridesMethod = false

    /// The maximum size of a file that is sent with the creation, if the server supports that.
    var singleRequestSize: Int64 = 1 << 20

    /// The maximum number of bytes of one `PATCH`; nil for all that remain.
    var chunkSize: Int64?

    /// All chunks but the last are a multiple of this.
    var chunkMultiple: Int64 = 1

    /// - Throws: A ``TransferError`` that names the invalid setting.
    init(_ settings: [String: String]) throws(TransferError) {
        for (key, value) in settings.sorted(by: { $0.key < $1.key }) {
            if try !requests.take(key, value, reserved: .tus) { try set(key, value) }
        }
        try requests.complete()
    }

    /// Why chunks of this size can't be a multiple of `chunkMultiple`; nil if they can. Otherwise `chunkMultiple` decides.
    func problem(ofChunksOf chunkSize: Int64) -> String? {
        guard chunkSize < chunkMultiple else { return nil }
        return
            "Chunks of at most \(chunkSize) bytes can't be a multiple of the setting chunkMultiple, \(chunkMultiple); use at least that size."
    }

    private mutating func set(_ key: String, _ value: String) throws(TransferError) {
        switch key {
        case "methodOverride": overridesMethod = try SettingsValue.choice(key, value, ["true": true, "false": false])
        case "singleRequestSize": singleRequestSize = try SettingsValue.bytes(key, value, from: 0)
        case "chunkSize": chunkSize = try SettingsValue.bytes(key, value, from: 1)
        case "chunkMultiple": chunkMultiple = try SettingsValue.bytes(key, value, from: 1)
        default:
            throw SettingsValue.invalid(
                "The setting \(key.debugDescription) is unknown to the tus transport; valid settings are \(Self.known.joined(separator: ", "))."
            )
        }
    }

    private static let known =
        (RequestSettings.names + ["chunkMultiple", "chunkSize", "methodOverride", "singleRequestSize"]).sorted()
}

extension ReservedHeaders {
    /// The reserved headers of the tus transport, in all dialects.
    static let tus = ReservedHeaders(of: .tus, names: ["content-type", "x-http-method-override"], prefixes: ["upload-", "tus-"])
}
