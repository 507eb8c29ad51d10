/// A request as it arrived at a ``ScriptedServer``.
package struct ReceivedRequest: Sendable {
    /// The method.
    package let method: String
    /// The path and query.
    package let path: String
    /// Header values by name in lower case.
    package let headers: [String: String]
    /// As much of the body as the script read; empty while the script is asked.
    package var body: [UInt8] = []

    /// Takes a head, without the empty line that ends it.
    init?(_ head: [UInt8]) {
        let lines = String(decoding: head, as: UTF8.self).split(whereSeparator: \.isNewline)
        let parts = lines.first?.split(separator: " ") ?? []
        guard parts.count == 3 else { return nil }
        method = String(parts[0])
        path = String(parts[1])
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        self.headers = headers
    }

    /// The length that the request says its body has.
    package var contentLength: Int { headers["content-length"].flatMap { Int($0) } ?? 0 }
}
