import CurlEngine
import Foundation
import TransferCore

/// An endpoint's settings, checked.
struct EndpointSettings {
    /// How connections are made.
    var connection = ConnectionSettings()

    /// Headers to send with each request to the endpoint's origin.
    var headers = HTTPHeaders()

    /// Origins beside the endpoint's own that credentials may be sent to, and that a redirect may lead to.
    var origins: Set<Origin> = []

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

    /// - Throws: A ``TransferError`` that names the setting that makes no sense.
    init(_ settings: [String: String]) throws(TransferError) {
        for (key, value) in settings.sorted(by: { $0.key < $1.key }) {
            if try connection.take(key, value) { continue }
            if key.hasPrefix("header.") {
                let name = String(key.dropFirst("header.".count))
                try ReservedHeaders.check(name)
                headers.append(name, value)
            } else {
                try set(key, value)
            }
        }
        try connection.complete()
    }

    private mutating func set(_ key: String, _ value: String) throws(TransferError) {
        switch key {
        case "origins": origins = try Self.origins(value)
        case "methodOverride": overridesMethod = try Self.choice(key, value, ["true": true, "false": false])
        case "singleRequestSize": singleRequestSize = try Self.bytes(key, value, from: 0)
        case "chunkSize": chunkSize = try Self.bytes(key, value, from: 1)
        case "chunkMultiple": chunkMultiple = try Self.bytes(key, value, from: 1)
        case "parallelThreshold": parallelThreshold = try Self.bytes(key, value, from: 1)
        default:
            throw Self.invalid(
                "The setting \(key.debugDescription) is not known to the tus transport; it knows \(Self.known.joined(separator: ", ")).")
        }
    }

    private static let known =
        (ConnectionSettings.names + [
            "chunkMultiple", "chunkSize", "header.NAME", "methodOverride", "origins", "parallelThreshold", "singleRequestSize",
        ]).sorted()

    static func choice<Value>(_ key: String, _ value: String, _ choices: [String: Value]) throws(TransferError) -> Value {
        guard let choice = choices[value] else {
            let names = choices.keys.sorted().joined(separator: ", ")
            throw invalid("The setting \(key) is \(value.debugDescription); write one of \(names).")
        }
        return choice
    }

    private static func bytes(_ key: String, _ value: String, from minimum: Int64) throws(TransferError) -> Int64 {
        guard let bytes = Int64(value), bytes >= minimum else {
            throw invalid("The setting \(key) is \(value.debugDescription); write a number of bytes, \(minimum) or more.")
        }
        return bytes
    }

    private static func origins(_ list: String) throws(TransferError) -> Set<Origin> {
        var origins: Set<Origin> = []
        for text in list.split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            guard let components = URLComponents(string: String(text)), let origin = components.url.flatMap(Origin.init),
                components.path.isEmpty || components.path == "/", components.query == nil, components.fragment == nil,
                components.user == nil, components.password == nil
            else {
                throw invalid("The setting origins has an entry that is no origin; write each as scheme://host or scheme://host:port.")
            }
            origins.insert(origin)
        }
        return origins
    }

    static func invalid(_ message: String) -> TransferError {
        TransferError(.permanent, .invalidEndpoint, message)
    }
}
