/// The stored name of a transport, for example `"tus"`.
///
/// Never change the ID of a released transport: stored accounts and checkpoints refer to it.
public struct TransportID: RawRepresentable, Hashable, Sendable, Codable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name: lower-case ASCII letters, digits and hyphens by convention.
    public let rawValue: String

    /// Creates an ID from a name.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Creates an ID from a literal name.
    public init(stringLiteral value: String) {
        rawValue = value
    }

    /// The name.
    public var description: String { rawValue }
}
