/// The stable identifier of a transport, for example `"tus"`.
///
/// Never change the ID of a released transport: stored accounts and checkpoints refer to it.
public struct TransportID: RawRepresentable, Hashable, Sendable, Codable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The identifier's text: lower-case ASCII letters, digits and hyphens by convention.
    public let rawValue: String

    /// Creates an ID from its text.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Creates an ID from a string literal.
    public init(stringLiteral value: String) {
        rawValue = value
    }

    /// The identifier's text.
    public var description: String { rawValue }
}
