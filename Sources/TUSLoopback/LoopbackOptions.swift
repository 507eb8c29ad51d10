/// The features and limits of a loopback server.
public struct LoopbackOptions: Hashable, Sendable {
    /// The largest accepted upload in bytes, advertised as `Tus-Max-Size`; nil for no limit.
    public var maximumSize: Int64?

    /// Whether `Location` is a path (`/files/…`) instead of a URL. tus allows both.
    public var usesRelativeLocation: Bool

    /// The maximum number of body bytes per second on each connection, in each direction, at least 1; nil for no limit.
    public var bytesPerSecond: Int64?

    /// The supported tus extensions besides *creation*.
    public var extensions: Set<LoopbackExtension>

    /// The time for which an incomplete upload is kept after its last change, rounded up to whole seconds (extension *expiration*); nil for
    /// no limit.
    public var lifetime: Duration?

    /// Whether complete uploads can be downloaded with `GET`, which is not part of tus.
    public var servesDownloads: Bool

    /// Creates options: by default, all features and no limits.
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

    /// Whether the server supports an extension: the options contain the extension and any extension that it requires.
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
