import Foundation

/// What is known of an upload besides its bytes; the JSON file beside them.
struct UploadRecord: Codable, Hashable, Sendable {
    /// The last component of the upload's URL.
    var id: String
    /// The announced size in bytes; nil as long as the client did not tell it, or the parts were not put together.
    var length: Int64?
    /// The metadata, decoded. A value that is not UTF-8 is shown with replacement characters.
    var metadata: [String: String]
    /// The metadata as it was sent, or nil if there was none.
    var uploadMetadata: String?
    /// `Upload-Concat` as it was sent, or nil if there was none.
    var uploadConcat: String?
    /// The IDs of the uploads that this one is put together of, if it is.
    var parts: [String]?
    /// When the upload is removed if it is still incomplete, in seconds since 1970.
    var expires: Int?
    /// Where bytes begin whose checksum was not compared yet. They are not the upload's before that.
    var unverifiedFrom: Int64?
    /// Whether all bytes are stored. For scripts: the server itself looks at the size of the file.
    var complete = false

    var isPartial: Bool { uploadConcat == "partial" }
}

/// The header `Upload-Metadata` (tus 1.0.0, "Creation").
enum UploadMetadata {
    /// Decodes comma-separated pairs of a key and an optional base64 value.
    ///
    /// - Returns: nil if it is not that, or a key comes twice.
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
