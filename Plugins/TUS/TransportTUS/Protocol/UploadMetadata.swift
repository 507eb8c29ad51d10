import CurlEngine
import Foundation
public import TransferCore

/// The metadata of an upload, as headers of tus and of the IETF protocol.
struct UploadMetadata {
    /// The value of the `Upload-Metadata` header (tus 1.0.0, "Creation"): keys with base64-encoded values.
    let headerValue: String

    /// The headers for the file's name and type in the IETF protocol, which has no headers for other metadata.
    ///
    /// The failure is a ``TransferError`` of the class ``FailureClass/unsupported`` that names another key of the session's
    /// metadata.
    let representationHeaders: Result<HTTPHeaders, TransferError>

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
        representationHeaders = Self.representationHeaders(values, attempt.options.metadata)
        values["transferid"] = [UInt8](attempt.transferID.utf8)
        headerValue = values.sorted { $0.key < $1.key }.map { key, value in
            value.isEmpty ? key : "\(key) \(Data(value).base64EncodedString())"
        }.joined(separator: ",")
    }

    /// - Parameters:
    ///   - values: All metadata.
    ///   - session: The session's metadata.
    private static func representationHeaders(
        _ values: [String: [UInt8]], _ session: [String: String]
    ) -> Result<HTTPHeaders, TransferError> {
        if let key = session.keys.sorted().first(where: { $0 != "filename" && $0 != "filetype" }) {
            return .failure(
                TransferError(
                    .unsupported, .invalidMetadata,
                    "The metadata key \(key.debugDescription) can't be sent with Resumable Uploads for HTTP; only filename and filetype can. Use a "
                        + "tus server, or remove the key."))
        }
        let type = String(decoding: values["filetype"] ?? [], as: UTF8.self)
        let name = percentEncoded(values["filename"] ?? [])
        return .success(["Content-Type": type, "Content-Disposition": "inline; filename*=UTF-8''\(name)"])
    }

    /// Encodes a value of an extended parameter (RFC 8187, section 3.2.1).
    private static func percentEncoded(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789ABCDEF")
        return bytes.reduce(into: "") { text, byte in
            let character = Character(UnicodeScalar(byte))
            if character.isASCII, character.isLetter || character.isNumber || "!#$&+-.^_`|~".contains(character) {
                text.append(character)
            } else {
                text += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
    }

    /// Checks that a key can be sent and is not reserved.
    ///
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
