/// The beginning of a server's response to an upload, such as a form handler's JSON or an object store's version name.
///
/// The queue stores this text unchanged and passes it to the app. A transport must not keep a response that contains a secret.
public struct ServerResponse: Hashable, Sendable, Codable {
    /// The maximum number of bytes of a response body that a transport may keep.
    public static let maximumBytes = 4096

    /// The status code, for example 201.
    public var status: Int

    /// The media type of ``text`` according to the server, for example `application/json`; or nil.
    public var mediaType: String?

    /// The body as UTF-8, or only its first ``maximumBytes`` bytes if it is longer.
    public var text: String

    /// Whether the body was longer than ``text``.
    public var isTruncated: Bool

    /// Creates a response. For transports.
    public init(status: Int, mediaType: String? = nil, text: String = "", isTruncated: Bool = false) {
        self.status = status
        self.mediaType = mediaType
        self.text = text
        self.isTruncated = isTruncated
    }
}
