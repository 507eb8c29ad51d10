package import CurlEngine
import Foundation
package import TransportSupport

extension HTTPHeaders {
    /// Whether the content is encoded, for example compressed (RFC 9110, section 8.4).
    package var hasContentCoding: Bool {
        self["Content-Encoding"].map { !["", "identity"].contains($0.lowercased()) } ?? false
    }
}

extension Checksum {
    /// The headers that request a checksum of the whole file (RFC 9530, section 4, and its predecessor, RFC 3230, section 4.3.1).
    package static let requestHeaders: HTTPHeaders = ["Want-Repr-Digest": "sha-256=10, sha-512=5", "Want-Digest": "sha-256, sha-512;q=0.5"]

    private static let algorithms: [String: ChecksumAlgorithm] = ["sha-512": .sha512, "sha-256": .sha256, "sha": .sha1, "md5": .md5]

    /// Reads the strongest supported checksum from a response's headers; nil if there is none.
    ///
    /// - Parameter isWhole: Whether the response contains the whole file, so a checksum of the content is also a checksum of the file.
    package init?(_ headers: HTTPHeaders, isWhole: Bool) {
        var found: [ChecksumAlgorithm: Checksum] = [:]
        for field in headers {
            let name = field.name.lowercased()
            switch name {
            case "repr-digest", "digest", "content-digest":
                guard isWhole || name != "content-digest" else { continue }
                for part in field.value.split(separator: ",") {
                    let member = part.prefix { $0 != ";" }
                    let pair = member.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                    // The value is between colons as in a structured field (RFC 8941, section 3.3.5), or bare.
                    guard pair.count == 2, let algorithm = Self.algorithms[pair[0].lowercased()] else { continue }
                    found[algorithm] = Self.decoded(pair[1].trimmingCharacters(in: CharacterSet(charactersIn: ":")), algorithm)
                }
            case "content-md5" where isWhole: found[.md5] = Self.decoded(field.value, .md5)
            default: break
            }
        }
        guard let best = ChecksumAlgorithm.allCases.compactMap({ found[$0] }).first else { return nil }
        self = best
    }

    private static func decoded(_ base64: String, _ algorithm: ChecksumAlgorithm) -> Checksum? {
        Data(base64Encoded: base64).flatMap { Checksum(algorithm, $0) }
    }
}
