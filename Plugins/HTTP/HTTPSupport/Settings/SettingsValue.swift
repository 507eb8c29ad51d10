import Foundation
package import TransferCore

/// Parses the values of an endpoint's settings.
package enum SettingsValue {
    /// Parses one of several words.
    package static func choice<Value>(_ key: String, _ value: String, _ choices: [String: Value]) throws(TransferError) -> Value {
        guard let choice = choices[value] else {
            let names = choices.keys.sorted().joined(separator: ", ")
            throw invalid("The setting \(key) is \(value.debugDescription); write one of \(names).")
        }
        return choice
    }

    /// The largest valid number of bytes, 64 PiB. Sums with positions in files do not overflow.
    private static let mostBytes: Int64 = 1 << 56

    /// Parses a number of bytes.
    package static func bytes(_ key: String, _ value: String, from minimum: Int64) throws(TransferError) -> Int64 {
        guard let bytes = Int64(value), (minimum...mostBytes).contains(bytes) else {
            throw invalid("The setting \(key) is \(value.debugDescription); write a number of bytes from \(minimum) to \(mostBytes).")
        }
        return bytes
    }

    /// Parses origins, separated by spaces or commas.
    package static func origins(_ list: String) throws(TransferError) -> Set<Origin> {
        var origins: Set<Origin> = []
        for text in list.split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            guard let components = URLComponents(string: String(text)), let origin = components.url.flatMap(Origin.init),
                components.path.isEmpty || components.path == "/", components.query == nil, components.fragment == nil,
                components.user == nil, components.password == nil
            else {
                throw invalid("The setting origins has an entry that is not an origin; write each as scheme://host or scheme://host:port.")
            }
            origins.insert(origin)
        }
        return origins
    }

    /// The error for an invalid setting.
    package static func invalid(_ message: String) -> TransferError {
        TransferError(.permanent, .invalidEndpoint, message)
    }
}
