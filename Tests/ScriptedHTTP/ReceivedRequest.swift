/// A request that a ``ScriptedServer`` received.
package struct ReceivedRequest: Sendable {
    package let method: String
    /// The path and query.
    package let path: String
    /// The header values, by lowercase name.
    package let headers: [String: String]
    /// The bytes of the body that the script's steps have read. Empty when the script is called.
    package var body: [UInt8] = []

    /// The trailer fields, by lowercase name. Available after a chunked body was read to its end.
    package var trailers: [String: String] = [:]
    /// The number of the connection, counted from 1.
    package var connection = 0
    /// The client's IP address.
    package var peer = ""

    /// Parses the head of a request. The head must not include the empty line that ends it.
    init?(_ head: [UInt8]) {
        let lines = String(decoding: head, as: UTF8.self).split(whereSeparator: \.isNewline)
        let parts = lines.first?.split(separator: " ") ?? []
        guard parts.count == 3 else { return nil }
        method = String(parts[0])
        path = String(parts[1])
        headers = Self.parse(lines.dropFirst())
    }

    static func parse(_ lines: some Sequence<some StringProtocol>) -> [String: String] {
        var fields: [String: String] = [:]
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon].lowercased()] = String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        return fields
    }

    package var isChunked: Bool { headers["transfer-encoding"] == "chunked" }

    /// The value of `Content-Length`, or 0 if it is missing.
    package var contentLength: Int { headers["content-length"].flatMap { Int($0) } ?? 0 }
}
