package import Foundation

/// A JSON value (RFC 8259). An object keeps the order of its members; a decoded object has its members sorted by name.
package indirect enum JSONValue: Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([(name: String, value: JSONValue)])
    /// Encoded JSON from another source; null in the output if it is invalid.
    case embedded(Data)

    /// The value on one line.
    package var text: String {
        var text = ""
        write(to: &text)
        return text
    }

    private func write(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += "\(value)"
        case .number(let value): text += value.isFinite ? "\(value)" : "null"
        case .string(let value): Self.write(value, to: &text)
        case .array(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.write(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                Self.write(member.name, to: &text)
                text += ":"
                member.value.write(to: &text)
            }
            text += "}"
        case .embedded(let data):
            guard Self.isJSON(data) else {
                text += "null"
                return
            }
            // In valid JSON, line breaks occur only between tokens, so a space can replace them. Other control characters occur only in strings.
            for scalar in String(decoding: data, as: UTF8.self).unicodeScalars {
                switch scalar {
                case "\n", "\r": text += " "
                case "\t": text += "\t"
                case _ where scalar.isControl: text += Self.escaped(scalar)
                default: text.unicodeScalars.append(scalar)
                }
            }
        }
    }

    /// Escapes a control character (RFC 8259, section 7). No control character needs more than four digits.
    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16)
        return "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    private static func write(_ string: String, to text: inout String) {
        text += "\""
        // Most strings need no escapes.
        guard string.utf8.contains(where: { $0 < 0x20 || $0 >= 0x7F || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) else {
            text += string
            text += "\""
            return
        }
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where scalar.isControl: text += escaped(scalar)
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }

    /// An object with the members of several objects, in their order.
    package static func joined(_ objects: JSONValue...) -> JSONValue { .object(objects.flatMap(\.members)) }

    /// The members of an object; empty for other values.
    var members: [(name: String, value: JSONValue)] { if case .object(let members) = self { members } else { [] } }

    /// Whether data is a single JSON value of any type.
    package static func isJSON(_ data: Data) -> Bool {
        (try? JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)) != nil
    }
}

extension JSONValue: Decodable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            let members = try container.decode([String: JSONValue].self).sorted { $0.key < $1.key }
            self = .object(members.map { (name: $0.key, value: $0.value) })
        }
    }
}

extension JSONValue: ExpressibleByDictionaryLiteral, ExpressibleByStringLiteral {
    package init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(elements.map { (name: $0.0, value: $0.1) })
    }

    package init(stringLiteral value: String) {
        self = .string(value)
    }
}

extension JSONValue {
    package init(_ value: String?) { self = value.map(JSONValue.string) ?? .null }
    package init(_ value: Int?) { self = value.map { .integer(Int64($0)) } ?? .null }
    package init(_ value: Int64?) { self = value.map(JSONValue.integer) ?? .null }
    package init(_ value: Double?) { self = value.map(JSONValue.number) ?? .null }

    /// A point in time, as ISO 8601 in UTC with milliseconds.
    package init(_ value: Date?) {
        self = value.map { .string($0.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))) } ?? .null
    }
}
