import HTTPTypes

struct Response: Sendable {
    var status: Int
    var headers: [(name: String, value: String)]
    var body: String
    /// A body from a file, which replaces ``body``.
    var content: Content?

    init(_ status: Int, _ headers: [(String, String)] = [], body: String = "") {
        self.status = status
        self.headers = headers.map { (name: $0.0, value: $0.1) }
        self.body = body
    }

    func head(closing: Bool) -> HTTPResponse {
        var fields = HTTPFields()
        for header in headers {
            guard let name = HTTPField.Name(header.name) else { continue }
            fields.append(HTTPField(name: name, value: header.value))
        }
        // The length is also set for HEAD, because NIO would otherwise announce a chunked body. NIO omits the field if the status allows no body.
        fields[.contentLength] = content.map { String($0.range.count) } ?? String(body.utf8.count)
        if closing { fields[.connection] = "close" }
        return HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
    }
}
