/// The first line and the headers of a request (RFC 9112, sections 3 and 5).
struct RequestHead: Sendable {
    var method: String
    /// The target without its query.
    var path: String
    var isKeptAlive: Bool
    private var headers: [String: String] = [:]

    /// The value of a header, whatever its name's case; several are joined by commas.
    subscript(name: String) -> String? { headers[name.lowercased()] }

    /// Parses the lines before the empty one.
    init(_ lines: [String]) throws(ConnectionFailure) {
        let words = lines.first?.split(separator: " ", omittingEmptySubsequences: false) ?? []
        guard words.count == 3, words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0" else {
            throw .malformed("The request line is not one of HTTP/1.1.")
        }
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else {
                throw .malformed("A header line has no name.")
            }
            let name = line[..<colon].lowercased()
            let value = line[line.index(after: colon)...].trimming(" \t")
            headers[name] = headers[name].map { $0 + ", " + value } ?? value
        }
        path = String(words[1].prefix { $0 != "?" })
        let connection = headers["connection"]?.lowercased() ?? ""
        isKeptAlive = words[2] == "HTTP/1.1" ? !connection.contains("close") : connection.contains("keep-alive")
        // For clients that can't send PATCH or DELETE; tus 1.0.0, "X-HTTP-Method-Override".
        method = headers["x-http-method-override"] ?? String(words[0])
    }

    /// How the body's end is found (RFC 9112, section 6.3).
    func bodyLength() throws(ConnectionFailure) -> BodyLength {
        if let coding = headers["transfer-encoding"] {
            guard coding.lowercased() == "chunked", headers["content-length"] == nil else {
                throw .malformed("The transfer encoding is not chunked alone.")
            }
            return .chunked
        }
        guard let text = headers["content-length"] else { return .known(0) }
        guard let length = Int64(digits: text) else { throw .malformed("Content-Length is not a number of bytes.") }
        return .known(length)
    }
}

/// How long a body is.
enum BodyLength: Hashable, Sendable {
    case known(Int64)
    case chunked
}

extension Int64 {
    /// A number as protocols write it: ASCII digits alone, without a sign.
    init?(digits text: some StringProtocol) {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        self.init(text)
    }
}

extension StringProtocol {
    func trimming(_ characters: String) -> String {
        String(drop { characters.contains($0) }.reversed().drop { characters.contains($0) }.reversed())
    }
}
