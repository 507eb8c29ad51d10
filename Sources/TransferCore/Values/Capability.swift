/// Text that grants access, such as the URL of an upload. The queue can store it, but no description or dump contains it.
package struct Capability: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package var description: String { "<redacted>" }

    package var debugDescription: String { "<redacted>" }

    /// A mirror without children, so that `dump` shows nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension Capability: Codable {
    package init(from decoder: any Decoder) throws {
        text = try decoder.singleValueContainer().decode(String.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

/// Values by name. Any value could be a ``Capability``, so the description contains only the names.
package struct NamedCapabilities: Hashable, Sendable {
    package var values: [String: String]

    package init(_ values: [String: String]) {
        self.values = values
    }
}

extension NamedCapabilities: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The names with redacted values, in the format of a dictionary.
    package var description: String { "\(values.mapValues(Capability.init))" }

    package var debugDescription: String { description }

    /// The mirror of a dictionary with redacted values, so that `dump` shows only the names.
    package var customMirror: Mirror { Mirror(reflecting: values.mapValues(Capability.init)) }
}

extension NamedCapabilities: Codable {
    package init(from decoder: any Decoder) throws {
        values = try decoder.singleValueContainer().decode([String: String].self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(values)
    }
}
