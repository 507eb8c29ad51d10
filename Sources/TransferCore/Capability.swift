/// A text that lets whoever has it do something, such as the address of an upload: stored, and never shown by accident.
package struct Capability: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    /// Always `<redacted>`.
    package var description: String { "<redacted>" }

    /// Always `<redacted>`.
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

/// Values by their names, any of which may be a ``Capability``: of what is printed of them only the names are a part.
package struct NamedCapabilities: Hashable, Sendable {
    package let values: [String: String]

    package init(_ values: [String: String]) {
        self.values = values
    }
}

extension NamedCapabilities: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The names, as a dictionary of capabilities is written.
    package var description: String { "\(values.mapValues(Capability.init))" }

    /// As ``description``.
    package var debugDescription: String { description }

    /// That of a dictionary of capabilities, so that `dump` shows the names.
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
