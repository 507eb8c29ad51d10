import CurlEngine
import Foundation
import TransferCore

/// A problem document (RFC 9457) of the IETF protocol, which explains a rejection.
struct UploadProblem: Decodable, Hashable, Sendable {
    enum Kind: String {
        case mismatchingOffset = "mismatching-upload-offset"
        case completedUpload = "completed-upload"
        case inconsistentLength = "inconsistent-upload-length"
    }

    let kind: Kind
    /// The server's offset if the request had another offset; nil if the document contains no valid offset.
    let expectedOffset: Int64?

    private enum CodingKeys: String, CodingKey {
        case type
        case expectedOffset = "expected-offset"
    }

    /// Parses the document in a response; nil if the body is not a document of this protocol. The engine keeps only the first
    /// 64 KiB of a body.
    init?(_ response: HTTPResponse) {
        let mediaType = response.headers["Content-Type"]?.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        guard mediaType == "application/problem+json", let problem = try? JSONDecoder().decode(Self.self, from: Data(response.body)) else {
            return nil
        }
        self = problem
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let type = try container.decode(String.self, forKey: .type)
        guard let name = type.wholeMatch(of: /.*http-problem-types#(.+)/)?.1, let kind = Kind(rawValue: String(name)) else {
            throw DecodingError.dataCorruptedError(forKey: .type, in: container, debugDescription: "The problem has another type.")
        }
        self.kind = kind
        // An invalid offset does not invalidate the type.
        let offset = try? container.decode(Int64.self, forKey: .expectedOffset)
        expectedOffset = kind == .mismatchingOffset ? offset.flatMap { RemoteUpload.sizes.contains($0) ? $0 : nil } : nil
    }
}
