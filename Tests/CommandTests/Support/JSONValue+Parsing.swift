import Foundation
import TransferOutput

extension JSONValue {
    init(parsing text: String) throws {
        self = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    subscript(name: String) -> JSONValue? { object?[name] }

    var object: [String: JSONValue]? {
        if case .object(let members) = self { Dictionary(members.map { ($0.name, $0.value) }) { $1 } } else { nil }
    }
    var array: [JSONValue]? { if case .array(let values) = self { values } else { nil } }
    var string: String? { if case .string(let text) = self { text } else { nil } }
    var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    /// The name of the value's type in a schema.
    var type: String {
        switch self {
        case .bool: "boolean"
        case .integer: "integer"
        case .number(let value): value.rounded() == value ? "integer" : "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        case .null, .embedded: "null"
        }
    }
}
