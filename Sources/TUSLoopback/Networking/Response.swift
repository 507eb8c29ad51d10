/// An answer.
struct Response: Sendable {
    var status: Int
    var headers: [(name: String, value: String)]
    var body: [UInt8]

    init(_ status: Int, _ headers: [(String, String)] = [], body: String = "") {
        self.status = status
        self.headers = headers.map { (name: $0.0, value: $0.1) }
        self.body = Array(body.utf8)
    }

    /// The bytes for the wire.
    ///
    /// - Parameter isHead: Whether it answers a HEAD, and so has no body.
    func encoded(forHead isHead: Bool, closing: Bool) -> [UInt8] {
        var text = "HTTP/1.1 \(status) \(Self.reason(status))\r\n"
        for header in headers { text += "\(header.name): \(header.value)\r\n" }
        // A 204 must not have one (RFC 9110, section 8.6); an answer to HEAD may go without.
        if status != 204, !isHead { text += "Content-Length: \(body.count)\r\n" }
        if closing { text += "Connection: close\r\n" }
        return Array((text + "\r\n").utf8) + (isHead ? [] : body)
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 204: "No Content"
        case 400: "Bad Request"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 409: "Conflict"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 423: "Locked"
        case 429: "Too Many Requests"
        case 500: "Internal Server Error"
        case 503: "Service Unavailable"
        // The phrase may be empty (RFC 9112, section 4).
        default: ""
        }
    }
}
