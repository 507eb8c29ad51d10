import Foundation
public import TransferCore

/// The value of the `Upload-Metadata` header (tus 1.0.0, "Creation"): keys with base64-encoded values.
struct UploadMetadata {
    /// The value of the header.
    let headerValue: String

    /// Collects the file's name, path and type, the session's metadata, and the transfer's ID. With the ID, the server's operator can find
    /// unfinished uploads.
    ///
    /// - Throws: A ``TransferError`` that names an invalid key.
    init(_ attempt: FileAttempt) throws(TransferError) {
        var values: [String: [UInt8]] = [
            "filename": attempt.remotePath.lastComponent,
            "filetype": [UInt8]("application/octet-stream".utf8),
        ]
        if attempt.remotePath.bytes != attempt.remotePath.lastComponent { values["relativePath"] = attempt.remotePath.bytes }
        for (key, value) in attempt.options.metadata {
            try Self.check(key)
            values[key] = [UInt8](value.utf8)
        }
        values["transferid"] = [UInt8](attempt.transferID.utf8)
        headerValue = values.sorted { $0.key < $1.key }.map { key, value in
            value.isEmpty ? key : "\(key) \(Data(value).base64EncodedString())"
        }.joined(separator: ",")
    }

    /// - Throws: A ``TransferError`` that names the invalid key.
    static func check(_ key: String) throws(TransferError) {
        guard !key.isEmpty, key.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") }) else {
            throw TransferError(
                .permanent, .invalidMetadata,
                "The metadata key \(key.debugDescription) can't be sent over tus; use printable ASCII without spaces and commas.")
        }
        guard key != "transferid" else {
            throw TransferError(.permanent, .invalidMetadata, "The metadata key \"transferid\" is reserved by TransferKit; use another.")
        }
    }
}

extension TransferError.Code {
    /// A key in a session's metadata can't be sent, or is reserved.
    public static let invalidMetadata = Self(rawValue: "invalidMetadata")
}
