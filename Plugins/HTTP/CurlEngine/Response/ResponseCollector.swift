/// Collects the headers and the body of a server's response, each up to a maximum size.
struct ResponseCollector {
    private let maximumHeaders: Int
    private let maximumBody: Int
    private var headerBytes: [UInt8] = []
    /// The number of header bytes of the current response, including its trailers.
    private var responseBytes = 0
    /// Whether no header line has arrived, not even one of an interim response.
    private(set) var isEmpty = true
    private(set) var body: [UInt8] = []
    private(set) var isBodyTruncated = false
    /// Whether the empty line after the headers arrived. libcurl treats a truncated header section as complete.
    private(set) var areHeadersComplete = false

    init(maximumHeaders: Int, maximumBody: Int) {
        self.maximumHeaders = maximumHeaders
        self.maximumBody = maximumBody
    }

    /// Adds one header line. libcurl also passes the headers of interim responses, and trailers. The headers of each response replace those of
    /// the previous one. Trailers are ignored.
    ///
    /// - Returns: Whether the headers and trailers of the response are within the size limit.
    mutating func addHeaderLine(_ line: UnsafeRawBufferPointer) -> Bool {
        isEmpty = false
        if !isFinal, unsafe line.starts(with: "HTTP/".utf8) {
            headerBytes.removeAll(keepingCapacity: true)
            responseBytes = 0
            areHeadersComplete = false
        }
        responseBytes += line.count
        guard responseBytes <= maximumHeaders else { return false }
        if isFinal { return true }
        if unsafe line.elementsEqual("\r\n".utf8) || line.elementsEqual("\n".utf8) { areHeadersComplete = true }
        unsafe headerBytes.append(contentsOf: line)
        return true
    }

    /// Adds bytes of the body.
    ///
    /// - Returns: Whether the body so far is within the size limit.
    mutating func addBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let room = maximumBody - body.count
        unsafe body.append(contentsOf: bytes.prefix(room))
        if bytes.count > room { isBodyTruncated = true }
        return !isBodyTruncated
    }

    /// Whether the headers of the final response are complete.
    var isFinal: Bool { areHeadersComplete && status >= 200 }

    /// The interim response that ended with the last header line; nil if there is none, or its status is 100 or 101.
    var interimHead: HTTPResponseHead? { areHeadersComplete && (102..<200).contains(status) ? head : nil }

    /// Whether the final response declares the length of its body, by its status or `Content-Length`, and the whole body has arrived (RFC 9112,
    /// section 6.3). False for a response with a transfer coding.
    var isWhole: Bool {
        guard isFinal else { return false }
        let headers = headers
        guard headers["Transfer-Encoding"] == nil else { return false }
        return status == 204 || status == 304 || headers["Content-Length"].flatMap { Int($0) } == body.count
    }

    /// The status code in the last status line (RFC 9112, section 4), or 0.
    private var status: Int {
        headerBytes.prefix { $0 != 0x0D && $0 != 0x0A }.split(separator: 0x20).dropFirst().first.flatMap {
            Int(String(decoding: $0, as: UTF8.self))
        } ?? 0
    }

    /// The status and the headers of the last response, which may be an interim response.
    var head: HTTPResponseHead { HTTPResponseHead(status: status, headers: headers) }

    var headers: HTTPHeaders {
        HTTPHeaders(parsing: headerBytes.split(whereSeparator: { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }).dropFirst())
    }
}
