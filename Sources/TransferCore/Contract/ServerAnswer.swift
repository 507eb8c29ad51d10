/// The beginning of a server's response to an upload, such as a form handler's JSON or an object store's version name.
///
/// The queue stores it unchanged and passes it to the app. A transport must not keep a response that repeats a secret.
public struct ServerAnswer: Hashable, Sendable, Codable {
    /// The maximum number of bytes of a response body that a transport may keep.
    public static let maximumBytes = 4096

    /// The status code, for example 201.
    public var status: Int

    /// The media type of ``text`` according to the server, for example `application/json`; or nil.
    public var mediaType: String?

    /// The first ``maximumBytes`` of the body at most, as UTF-8.
    public var text: String

    /// Whether the body was longer than ``text``.
    public var isTruncated: Bool

    /// Creates an answer. For transports.
    public init(status: Int, mediaType: String? = nil, text: String = "", isTruncated: Bool = false) {
        self.status = status
        self.mediaType = mediaType
        self.text = text
        self.isTruncated = isTruncated
    }
}
