/// The beginning of what a server answered to a file, for the app to read: a form handler's JSON, an object store's name for the version.
///
/// Stored and shown as it is. A transport keeps none that repeats a secret.
public struct ServerAnswer: Hashable, Sendable, Codable {
    /// How many bytes of an answer's text a transport may keep.
    public static let maximumBytes = 4096

    /// The status code, for example 201.
    public var status: Int

    /// The media type of ``text`` as the server named it, for example `application/json`; nil if it did not.
    public var mediaType: String?

    /// The answer's body as UTF-8, at most ``maximumBytes`` of it.
    public var text: String

    /// Whether the body was longer than ``text``.
    public var isTruncated: Bool

    /// Makes an answer; called by transports.
    public init(status: Int, mediaType: String? = nil, text: String = "", isTruncated: Bool = false) {
        self.status = status
        self.mediaType = mediaType
        self.text = text
        self.isTruncated = isTruncated
    }
}
