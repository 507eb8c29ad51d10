/// What a server offers and how it behaves.
public struct LoopbackOptions: Hashable, Sendable {
    /// The largest upload it takes in bytes, advertised as `Tus-Max-Size`; nil for no limit.
    public var maximumSize: Int64?

    /// Whether `Location` is a path (`/files/…`) instead of a whole URL. tus allows both.
    public var usesRelativeLocation: Bool

    /// How many bytes of body each connection takes a second, at least 1; nil for as fast as they come.
    public var bytesPerSecond: Int64?

    /// Makes options.
    public init(maximumSize: Int64? = nil, usesRelativeLocation: Bool = false, bytesPerSecond: Int64? = nil) {
        self.maximumSize = maximumSize
        self.usesRelativeLocation = usesRelativeLocation
        self.bytesPerSecond = bytesPerSecond
    }
}
