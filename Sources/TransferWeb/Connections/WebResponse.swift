import HTTPTypes
import HummingbirdCore
import TransferOutput

struct WebResponse: Sendable {
    var status: Int
    var headers: [(name: String, value: String)]
    var body: String
    /// An endless body, which replaces ``body``.
    var stream: (@concurrent @Sendable (any ResponseBodyWriter) async throws -> Void)?

    init(_ status: Int, _ mediaType: String? = nil, _ body: String = "", headers: [(String, String)] = []) {
        self.status = status
        self.body = body
        self.headers = headers.map { (name: $0.0, value: $0.1) }
        if let mediaType { self.headers.append((name: "Content-Type", value: mediaType)) }
    }

    init(_ json: JSONValue, _ status: Int = 200, headers: [(String, String)] = []) {
        self.init(status, "application/json", json.text + "\n", headers: headers)
    }

    /// The headers of all responses. If the name of a file became markup by mistake, these headers would keep the browser from running scripts in
    /// the markup.
    private static let securityHeaders = [
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
        ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"), ("Cache-Control", "no-store"),
    ]

    func head(closing: Bool) -> HTTPResponse {
        var fields = HTTPFields()
        for (name, value) in Self.securityHeaders + headers.map({ ($0.name, $0.value) }) {
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        if stream == nil { fields[.contentLength] = String(body.utf8.count) }
        if closing { fields[.connection] = "close" }
        return HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
    }
}
