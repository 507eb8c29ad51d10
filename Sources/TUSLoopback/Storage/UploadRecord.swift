import Foundation

/// The properties of an upload, stored as a JSON file beside its bytes.
struct UploadRecord: Codable, Hashable, Sendable {
    /// The last component of the upload's URL.
    var id: String
    /// The announced size in bytes; nil while it is deferred or a final upload is not concatenated.
    var length: Int64?
    /// The metadata, decoded. A value that is not UTF-8 is shown with replacement characters.
    var metadata: [String: String]
    /// The `Upload-Metadata` of the client; nil if there was none.
    var uploadMetadata: String?
    /// The `Upload-Concat` of the client; nil if there was none.
    var uploadConcat: String?
    /// The IDs of the partial uploads of a final upload; nil for others.
    var parts: [String]?
    /// The time at which the upload is removed if it is still incomplete, in seconds since 1970.
    var expires: Int?
    /// The offset of bytes whose checksum is not verified yet. A restarted server discards them.
    var unverifiedFrom: Int64?
    /// Whether all bytes are stored. For scripts; the server itself checks the size of the file.
    var complete = false

    var isPartial: Bool { uploadConcat == "partial" }
}

/// The header `Upload-Metadata` (tus 1.0.0, "Creation").
enum UploadMetadata {
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
