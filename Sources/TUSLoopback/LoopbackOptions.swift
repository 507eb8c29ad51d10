/// What a server offers and how it behaves.
public struct LoopbackOptions: Hashable, Sendable {
    /// The largest upload it takes in bytes, advertised as `Tus-Max-Size`; nil for no limit.
    public var maximumSize: Int64?

    /// Whether `Location` is a path (`/files/…`) instead of a whole URL. tus allows both.
    public var usesRelativeLocation: Bool

    /// How many bytes of body each connection takes or gives a second, at least 1; nil for as fast as they come.
    public var bytesPerSecond: Int64?

    /// The extensions of tus that it has, besides *creation*.
    public var extensions: Set<LoopbackExtension>

    /// How long after its last change an incomplete upload is removed, in whole seconds, rounded up (extension *expiration*); nil for never.
    public var lifetime: Duration?

    /// Whether complete uploads are given back by `GET`, which is not part of tus.
    public var servesDownloads: Bool

    /// Makes options.
    public init(
        maximumSize: Int64? = nil, usesRelativeLocation: Bool = false, bytesPerSecond: Int64? = nil,
        extensions: Set<LoopbackExtension> = Set(LoopbackExtension.allCases), lifetime: Duration? = nil, servesDownloads: Bool = true
    ) {
        self.maximumSize = maximumSize
        self.usesRelativeLocation = usesRelativeLocation
        self.bytesPerSecond = bytesPerSecond
        self.extensions = extensions
        self.lifetime = lifetime
        self.servesDownloads = servesDownloads
    }

    /// Whether it has an extension, and the one that this builds on.
    func offers(_ name: LoopbackExtension) -> Bool {
        guard extensions.contains(name) else { return false }
        return switch name {
        case .checksumTrailer: extensions.contains(.checksum)
        case .concatenationUnfinished: extensions.contains(.concatenation)
        default: true
        }
    }

    /// The value of `Tus-Extension`.
    var advertised: String {
        let names = ["creation"] + LoopbackExtension.allCases.filter(offers).map(\.rawValue) + (lifetime == nil ? [] : ["expiration"])
        return names.joined(separator: ",")
    }
}
