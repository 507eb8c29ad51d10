/// The features and limits of a loopback server. An option marked with IETF applies only to the IETF protocol; see ``LoopbackDialect``.
public struct LoopbackOptions: Hashable, Sendable {
    /// The protocol.
    public var dialect: LoopbackDialect

    /// The largest accepted upload in bytes, advertised as `Tus-Max-Size` or in `Upload-Limit`; nil for no limit.
    public var maximumSize: Int64?

    /// Whether `Location` is a path, such as `/files/…`, instead of a URL. Both protocols allow paths and URLs.
    public var usesRelativeLocation: Bool

    /// The maximum number of body bytes per second on each connection, in each direction, at least 1; nil for no limit.
    public var bytesPerSecond: Int64?

    /// The supported tus extensions, in addition to *creation*.
    public var extensions: Set<LoopbackExtension>

    /// The time for which the server keeps an incomplete upload after its last change, rounded up to whole seconds (extension
    /// *expiration*); nil for no limit.
    public var lifetime: Duration?

    /// Whether complete uploads can be downloaded with `GET`, which is not part of tus.
    public var servesDownloads: Bool

    /// The smallest accepted upload in bytes (IETF); nil for no limit. The server checks only a length that is known before the content arrives.
    public var minimumSize: Int64?

    /// The maximum number of content bytes in a request with `Content-Length` (IETF); nil for no limit.
    public var maximumAppendSize: Int64?

    /// The minimum number of content bytes in a request with `Content-Length` and content that does not complete the upload (IETF); nil for no
    /// limit.
    public var minimumAppendSize: Int64?

    /// Whether to send interim responses (104). If not, the server behaves as if a proxy dropped the interim responses (IETF).
    public var sendsInterimResponses: Bool

    /// The number of received bytes after which an interim response reports the offset (IETF); nil for no such responses. Content with a checksum
    /// causes no such responses.
    public var progressInterval: Int64?

    /// Whether to report the SHA-256 of complete uploads on request (`Want-Repr-Digest`, IETF).
    public var reportsDigests: Bool

    /// Whether the URL of an upload becomes invalid when the upload is complete (IETF). The uploaded file stays available for downloads.
    public var forgetsCompleteUploads: Bool

    /// Creates options: by default, tus with all extensions and no limits.
    public init(
        maximumSize: Int64? = nil, usesRelativeLocation: Bool = false, bytesPerSecond: Int64? = nil,
        extensions: Set<LoopbackExtension> = Set(LoopbackExtension.allCases), lifetime: Duration? = nil, servesDownloads: Bool = true,
        dialect: LoopbackDialect = .tus, minimumSize: Int64? = nil, maximumAppendSize: Int64? = nil, minimumAppendSize: Int64? = nil,
        sendsInterimResponses: Bool = true, progressInterval: Int64? = nil, reportsDigests: Bool = true,
        forgetsCompleteUploads: Bool = false
    ) {
        self.dialect = dialect
        self.minimumSize = minimumSize
        self.maximumAppendSize = maximumAppendSize
        self.minimumAppendSize = minimumAppendSize
        self.sendsInterimResponses = sendsInterimResponses
        self.progressInterval = progressInterval
        self.reportsDigests = reportsDigests
        self.forgetsCompleteUploads = forgetsCompleteUploads
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
