/// The name of a transport as it is written to the store, for example `"tus"`.
///
/// A transport never changes its ID once it is released: persisted accounts and checkpoints refer to it.
public struct TransportID: RawRepresentable, Hashable, Sendable, Codable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name itself: lower-case ASCII letters, digits and hyphens by convention.
    public let rawValue: String

    /// Makes an ID of a name.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Makes an ID of a literal name.
    public init(stringLiteral value: String) {
        rawValue = value
    }

    /// The name itself.
    public var description: String { rawValue }
}
