import Foundation
import SystemPackage
import Testing

/// Sends requests over sockets, so that tests control each byte.
struct WebClient: Sendable {
    let port: UInt16
    var token: String?
    var headers: [String: String] = [:]
    var host: String?

    init(port: UInt16, token: String?) {
        self.port = port
        self.token = token
    }

    func get(_ path: String, _ headers: [String: String] = [:]) async throws -> WebReply { try await send("GET", path, headers) }

    func post(_ path: String, json: String = "{}", _ headers: [String: String] = [:]) async throws -> WebReply {
        try await send("POST", path, headers.merging(["Content-Type": "application/json"]) { given, _ in given }, body: json)
    }

    func post(_ path: String, form fields: [(String, String)], _ headers: [String: String] = [:]) async throws -> WebReply {
        let body = fields.map { "\($0)=\($1.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")" }.joined(separator: "&")
        return try await send("POST", path, headers.merging(["Content-Type": "application/x-www-form-urlencoded"]) { $1 }, body: body)
    }

    /// Sends one request on its own connection, and reads the response.
    func send(_ method: String, _ path: String, _ headers: [String: String] = [:], body: String? = nil) async throws -> WebReply {
        let socket = try WebConnection(port: port)
        try socket.send(head(method, path, headers, length: body?.utf8.count) + (body ?? ""))
        return try WebReply(await socket.readToEnd())
    }

    /// Returns the request line and the headers, with the empty line after them.
    func head(_ method: String, _ path: String, _ headers: [String: String] = [:], length: Int? = nil, version: String = "1.1") -> String {
        var all = ["Host": host ?? "127.0.0.1:\(port)", "Connection": "close"]
        if let token { all["Authorization"] = "Bearer \(token)" }
        if let length { all["Content-Length"] = "\(length)" }
        all.merge(self.headers) { $1 }
        all.merge(headers) { $1 }
        return "\(method) \(path) HTTP/\(version)\r\n" + all.filter { !$0.value.isEmpty }.map { "\($0.key): \($0.value)\r\n" }.joined()
            + "\r\n"
    }
}

struct WebReply: Sendable {
    /// Thrown if the server closes the connection without a status line. Contains the received text.
    struct NoResponse: Error {
        let text: String
    }

    let status: Int
    /// The headers by their names in lower case.
    let headers: [String: String]
    let body: String

    init(_ data: Data) throws {
        let text = String(decoding: data, as: UTF8.self)
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        let lines = parts[0].components(separatedBy: "\r\n")
        guard let status = lines[0].split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
            throw NoResponse(text: String(text.prefix(200)))
        }
        self.status = status
        headers = Dictionary(
            lines.dropFirst().compactMap { line in
                line.firstIndex(of: ":").map {
                    (line[..<$0].lowercased(), line[line.index(after: $0)...].trimmingCharacters(in: .whitespaces))
                }
            }
        ) { "\($0), \($1)" }
        body = parts.count > 1 ? String(parts[1]) : ""
    }

    /// The body as a JSON object.
    var object: [String: Any] {
        get throws { try #require(JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any], "\(body)") }
    }

    /// The `code` of an error response; nil if the response has none.
    var code: String? { (try? object)?["code"] as? String }
}
