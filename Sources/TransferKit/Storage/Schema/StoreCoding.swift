import Foundation

/// Encodes and decodes stored values. Dates and durations become milliseconds; other values become JSON with sorted keys, which any SQLite
/// tool can show.
enum StoreCoding {
    static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func encodeIfPresent(_ value: (some Encodable)?) throws -> String? {
        try value.map { try encode($0) }
    }

    static func decode<Value: Decodable>(_ type: Value.Type = Value.self, from text: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }

    static func decodeIfPresent<Value: Decodable>(_ type: Value.Type = Value.self, from text: String?) throws -> Value? {
        try text.map { try decode(type, from: $0) }
    }

    /// Returns a date as milliseconds since 1970.
    static func encode(_ date: Date) -> Int64 { date.milliseconds }

    /// Returns a duration in milliseconds.
    static func encode(_ duration: Duration) -> Int64 { duration.nanoseconds / 1_000_000 }

    /// Returns the date for milliseconds since 1970. Out-of-range milliseconds, which only a damaged database contains, become
    /// `distantPast` or `distantFuture`.
    static func date(_ milliseconds: Int64) -> Date {
        Date(milliseconds: milliseconds)
    }
}

extension SessionID {
    var data: Data {
        let (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) = uuid.uuid
        return Data([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
    }

    /// Creates an ID from the 16 bytes of a UUID; nil for another length.
    init?(data: Data) {
        guard data.count == 16 else { return nil }
        let b = [UInt8](data)
        self.init(
            uuid: UUID(
                uuid: (b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15])))
    }
}
