import Foundation

/// The properties of an upload, stored as a JSON file next to the file with its bytes.
struct StoredUpload: Codable, Hashable, Sendable {
    /// The last component of the upload's URL.
    var id: String
    /// The size in bytes; nil until the client announces the size, or until a final upload is concatenated.
    var length: Int64?
    /// The decoded metadata. In values that are not UTF-8, invalid bytes are replaced with U+FFFD.
    var metadata: [String: String]
    /// The client's `Upload-Metadata` header; nil if there was none.
    var uploadMetadata: String?
    /// The client's `Upload-Concat` header; nil if there was none.
    var uploadConcat: String?
    /// The IDs of the partial uploads of a final upload; nil for other uploads.
    var parts: [String]?
    /// The time at which the upload expires if it is still incomplete, in seconds since 1970; nil if it does not expire.
    var expires: Int?
    /// The offset at which the content of a request begins while the checksum of this content is not verified; nil for no such request. A restarted
    /// server removes the unverified bytes.
    var unverifiedFrom: Int64?
    /// Whether a request has completed the upload (IETF); nil for a tus upload, which is complete when its offset equals
    /// ``length``.
    var isClosed: Bool?
    /// Whether the upload is complete. The JSON file contains this property for scripts and tests; the server uses ``Upload/isComplete``.
    var complete = false

    var isPartial: Bool { uploadConcat == "partial" }
}

/// The header `Upload-Metadata` (tus 1.0.0, "Creation").
enum UploadMetadataHeader {
    /// Decodes comma-separated pairs of a key and an optional base64 value.
    ///
    /// - Returns: Nil if the header is malformed or contains a key twice.
    static func decode(_ header: String) -> [String: String]? {
        var metadata: [String: String] = [:]
        for pair in header.split(separator: ",", omittingEmptySubsequences: false) {
            let words = pair.trimming(" ").split(separator: " ", omittingEmptySubsequences: false).map(String.init)
            guard let key = words.first, !key.isEmpty, words.count <= 2, metadata[key] == nil else { return nil }
            guard let value = Data(base64Encoded: words.count == 2 ? words[1] : "") else { return nil }
            metadata[key] = String(decoding: value, as: UTF8.self)
        }
        return metadata
    }
}
