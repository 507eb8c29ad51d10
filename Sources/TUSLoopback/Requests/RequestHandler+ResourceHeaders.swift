import Crypto
import Foundation
import NIOPosix
import SystemPackage
import TransferCore

/// The headers of the IETF protocol.
extension RequestHandler {
    var partialUploadMediaType: String { "application/partial-upload" }

    /// The header with the draft version; empty for the final protocol.
    var draftVersionHeaders: [(String, String)] { options.dialect.draftVersion.map { [(Self.interopHeader, $0)] } ?? [] }

    /// The headers with the offset and the completeness of an upload.
    func state(of upload: Upload) -> [(String, String)] {
        [("Upload-Offset", "\(upload.offset)"), ("Upload-Complete", upload.isComplete ? "?1" : "?0")]
    }

    /// The header with the limits; empty if there are none.
    ///
    /// - Parameter upload: The upload, whose remaining lifetime is included; nil for the limits of new uploads.
    func limits(of upload: Upload?) -> [(String, String)] {
        var members: [(String, Int64?)] = [
            ("max-size", options.maximumSize), ("min-size", options.minimumSize), ("max-append-size", options.maximumAppendSize),
            ("min-append-size", options.minimumAppendSize),
        ]
        let age = upload?.record.expires.map { Int64($0) - Int64(now().timeIntervalSince1970.rounded(.up)) }
        members.append((options.dialect == .draft6 ? "expires" : "max-age", age.map { max(0, $0) }))
        let text = members.compactMap { name, value in value.map { "\(name)=\($0)" } }.joined(separator: ", ")
        return text.isEmpty ? [] : [("Upload-Limit", text)]
    }

    /// Returns whether a request completes the upload.
    func completeness(of exchange: Exchange) throws(ErrorResponse) -> Bool {
        switch exchange["Upload-Complete"] {
        case "?1"?: return true
        case "?0"?: return false
        default: throw ErrorResponse(400, because: "Upload-Complete must be ?1 or ?0.")
        }
    }

    /// Returns the length of the upload: the length that the request announces or, if the request is the last one, the offset plus the size
    /// of its content. Nil if neither is known.
    func announcedLength(_ exchange: Exchange, at offset: Int64, isLast: Bool) throws(ErrorResponse) -> Int64? {
        let implied = isLast ? exchange.bodyLength.map { offset + $0 } : nil
        guard let text = exchange["Upload-Length"] else { return implied }
        guard let length = Int64(digits: text) else { throw ErrorResponse(400, because: "Upload-Length must be a number of bytes.") }
        if let implied, implied != length { throw inconsistentLength }
        return length
    }

    var inconsistentLength: ErrorResponse { problem(400, "inconsistent-upload-length", "The lengths of the upload differ.") }

    func checkLimits(_ exchange: Exchange, length: Int64?, isLast: Bool) throws(ErrorResponse) {
        if let length, let maximum = options.maximumSize, length > maximum {
            throw ErrorResponse(413, limits(of: nil), because: "The upload is larger than \(maximum) bytes.")
        }
        if let length, let minimum = options.minimumSize, length < minimum {
            throw ErrorResponse(400, limits(of: nil), because: "The upload is smaller than \(minimum) bytes.")
        }
        guard let count = exchange.bodyLength else { return }
        if let maximum = options.maximumAppendSize, count > maximum {
            throw ErrorResponse(413, limits(of: nil), because: "The request has more than \(maximum) bytes.")
        }
        if let minimum = options.minimumAppendSize, !isLast, count > 0, count < minimum {
            throw ErrorResponse(400, limits(of: nil), because: "The request has fewer than \(minimum) bytes.")
        }
    }

    /// Returns the checksum of a request's content (RFC 9530, "Content-Digest"); nil if there is none.
    func contentDigest(of exchange: Exchange) throws(ErrorResponse) -> ChecksumLocation? {
        try sha256(in: "Content-Digest", of: exchange).map { .header($0) }
    }

    /// Returns the SHA-256 in a header with a dictionary of checksums (RFC 9530, section 2). Ignores other algorithms, and returns nil if
    /// the dictionary has no SHA-256.
    func sha256(in name: String, of exchange: Exchange) throws(ErrorResponse) -> TUSChecksum? {
        var checksum: TUSChecksum?
        for member in exchange[name]?.split(separator: ",") ?? [] {
            let pair = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair[0].trimming(" \t") == "sha-256" else { continue }
            // A value can have parameters after a semicolon.
            let value = pair.count == 2 ? pair[1].prefix { $0 != ";" }.trimming(" \t") : ""
            // If a key occurs more than once, its last value applies (RFC 9651, section 4.2.2).
            checksum = value.hasPrefix(":") && value.hasSuffix(":") ? TUSChecksum("sha256 \(value.dropFirst().dropLast())") : nil
            guard checksum != nil else { throw ErrorResponse(400, because: "\(name) must have the form \"sha-256=:BASE64:\".") }
        }
        return checksum
    }

    /// Returns the header with the checksum of an upload (RFC 9530); empty if the upload is incomplete, the client does not request the checksum
    /// ("Want-Repr-Digest"), the server reports no checksums, or the file can't be read.
    func digest(of upload: Upload, for exchange: Exchange) async -> [(String, String)] {
        guard options.reportsDigests, upload.isComplete, exchange["Want-Repr-Digest"]?.contains("sha-256") == true,
            let digest = await sha256(of: upload)
        else { return [] }
        return [("Repr-Digest", "sha-256=:\(digest):")]
    }

    /// Returns the SHA-256 of an upload in base64; nil if the file can't be read.
    func sha256(of upload: Upload) async -> String? {
        try? await NIOThreadPool.singleton.runIfActive {
            Data(SHA256.hash(data: try Data(contentsOf: URL(filePath: upload.file.string), options: .alwaysMapped))).base64EncodedString()
        }
    }

    /// Returns a response with a problem type of the protocol (RFC 9457), or with plain text for a 409 if the protocol version does not
    /// explain conflicts.
    func problem(
        _ status: Int, _ type: String, _ title: String, _ headers: [(String, String)] = [], members: [String: Int64] = [:]
    ) -> ErrorResponse {
        guard options.dialect.explainsConflict || status != 409 else {
            return ErrorResponse(status, because: title)
        }
        let strings = [("type", "https://iana.org/assignments/http-problem-types#\(type)"), ("title", title)].map { ($0.0, "\"\($0.1)\"") }
        let fields = (strings + members.map { ($0.key, "\($0.value)") }).sorted { $0.0 < $1.0 }
        let text = fields.map { "\"\($0.0)\": \($0.1)" }
        return ErrorResponse(
            status, headers + [("Content-Type", "application/problem+json")], because: "{\(text.joined(separator: ", "))}")
    }

    /// Returns the file name in the parameter `filename*` of `Content-Disposition` (RFC 6266); nil if the header lacks this parameter. Ignores
    /// the parameter `filename`.
    static func fileName(in header: String) -> String? {
        for parameter in header.split(separator: ";").dropFirst() {
            let pair = parameter.trimming(" ").split(separator: "=", maxSplits: 1).map(String.init)
            guard pair.count == 2 else { continue }
            if pair[0].lowercased() == "filename*" {
                return pair[1].split(separator: "'").last.map(decoded)
            }
        }
        return nil
    }

    /// Decodes a percent-encoded value. Invalid UTF-8 is replaced with U+FFFD.
    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            let digits = byte == UInt8(ascii: "%") ? String(decoding: rest.prefix(2), as: UTF8.self) : ""
            // UInt8(_:radix:) also accepts a sign.
            if digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit), let value = UInt8(digits, radix: 16) {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
