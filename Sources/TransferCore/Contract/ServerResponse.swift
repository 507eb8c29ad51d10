public import Foundation

/// The beginning of a server's response to an upload, such as a form handler's JSON or an object store's version name.
///
/// The queue stores this text unchanged and passes it to the app. A transport must not keep a response that contains a secret.
public struct ServerResponse: Hashable, Sendable, Codable {
    /// The default maximum number of bytes of a response body that a transport keeps: 4 KiB.
    public static let defaultLimit = 4_096

    /// The maximum number of bytes of a response body that a transport may keep: 256 KiB.
    public static let maximumLimit = 262_144

    /// The status code, for example 201.
    public var status: Int

    /// The media type of ``text`` according to the server, for example `application/json`; nil if unreported.
    public var mediaType: String?

    /// The body as UTF-8, or only its first bytes if it is longer than the transport's limit. Invalid UTF-8 is replaced with U+FFFD.
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

    /// Decodes ``text`` as JSON.
    ///
    /// ```swift
    /// struct Created: Decodable { var id: Int }
    /// let id = try response.decoded(as: Created.self).id
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - decoder: The decoder, for example with another strategy for dates.
    /// - Throws: A ``TransferError`` with the code `invalidResponse` if the text is incomplete, or not the JSON of such a value.
    public func decoded<Value: Decodable>(as type: Value.Type, with decoder: JSONDecoder = JSONDecoder()) throws -> Value {
        guard !isTruncated else {
            throw TransferError(
                .permanent, .invalidResponse,
                "The server's response is longer than the \(text.utf8.count) bytes that were kept, so it can't be decoded. Raise the limit of the "
                    + "transport, such as responseLimit for plain HTTP.")
        }
        do {
            return try decoder.decode(type, from: Data(text.utf8))
        } catch {
            throw TransferError(
                .permanent, .invalidResponse, "The server's response (status \(status)) is not the JSON of a value of the type \(type).",
                cause: "\(error)")
        }
    }
}
