import Foundation
import HTTPTypes

/// A request whose headers the server has received. The server adds the body later.
struct WebRequest: Sendable {
    let method: String
    /// The path, still encoded, without the query.
    let path: String
    /// The decoded components of the path. An invalid encoding becomes a component that no resource has.
    let components: [String]
    /// The decoded parameters of the query, in order.
    let query: [(name: String, value: String)]
    /// The host and port from the Host header.
    let authority: String?
    private let headers: HTTPFields
    var body: [UInt8] = []

    init(_ head: HTTPRequest) {
        method = head.method.rawValue
        authority = head.authority
        headers = head.headerFields
        let target = (head.path ?? "").split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(target.first ?? "")
        components =
            path.hasPrefix("/")
            ? path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map { $0.removingPercentEncoding ?? "\u{FFFD}" } : []
        query = target.count > 1 ? Self.parameters(target[1]) : []
    }

    /// The value of a header, ignoring the case of the name. Joins several values with commas.
    subscript(name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }

    /// The first value of a parameter of the query.
    func parameter(_ name: String) -> String? { query.first { $0.name == name }?.value }

    /// The media type of the body in lower case, without parameters.
    var mediaType: String? {
        self["Content-Type"]?.split(separator: ";").first?.trimmingCharacters(in: .whitespaces).lowercased()
    }

    func cookie(_ name: String) -> String? {
        // A request can contain several Cookie headers (RFC 9113, section 8.2.3).
        let pairs = headers[values: .cookie].flatMap { $0.split(separator: ";") }
        for pair in pairs {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2, parts[0].trimmingCharacters(in: .whitespaces) == name {
                return parts[1].trimmingCharacters(in: .whitespaces)
            }
        }
        return nil
    }

    /// Decodes `application/x-www-form-urlencoded` (URL Standard, section 5.1). Omits pairs that are not UTF-8.
    static func parameters(_ text: some StringProtocol) -> [(name: String, value: String)] {
        text.split(separator: "&").compactMap { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
                $0.replacingOccurrences(of: "+", with: " ").removingPercentEncoding
            }
            guard let name = parts[0] else { return nil }
            guard parts.count > 1 else { return (name: name, value: "") }
            return parts[1].map { (name: name, value: $0) }
        }
    }
}
