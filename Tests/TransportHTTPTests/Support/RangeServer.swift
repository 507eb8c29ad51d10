import Foundation
import Locking
import ScriptedHTTP
import TransferCore

/// Creates the responses of a server to requests for one file, or for ranges of the file (RFC 9110).
final class RangeServer: Sendable {
    let content: [UInt8]
    private let tag: Locked<String?>

    /// - Parameter tag: The entity tag of the version, or nil for none.
    init(_ text: String, tag: String? = "\"v1\"") {
        content = Array(text.utf8)
        self.tag = Locked(tag)
    }

    /// A file of printable bytes that depend on their position.
    convenience init(size: Int, tag: String? = "\"v1\"") {
        self.init(String(decoding: TemporaryFile.content(size: size).map { $0 % 94 + 33 }, as: UTF8.self), tag: tag)
    }

    var text: String { String(decoding: content, as: UTF8.self) }

    /// Changes the version of the file, but not its length.
    func change() { tag.withLock { $0 = "\"v2\"" } }

    /// The requested range; nil for the whole file.
    static func range(_ request: ReceivedRequest) -> Range<Int>? {
        let bounds = request.headers["range"]?.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) } ?? []
        return bounds.count == 2 ? bounds[0]..<bounds[1] + 1 : nil
    }

    func answer(_ request: ReceivedRequest, _ headers: [String: String] = [:]) -> ServerStep {
        let (status, fields, body) = components(request, headers)
        return .answer(status, fields, body: body)
    }

    /// The head of the response to a request, and the first bytes of its body.
    func beginning(_ request: ReceivedRequest, bytes: Int) -> ServerStep {
        let (status, fields, body) = components(request, [:])
        let lines = fields.map { "\($0.key): \($0.value)\r\n" }.joined()
        return .raw("HTTP/1.1 \(status) Scripted\r\n\(lines)Content-Length: \(body.utf8.count)\r\n\r\n\(body.prefix(bytes))")
    }

    /// The rest of the body after ``beginning(_:bytes:)``.
    func rest(_ request: ReceivedRequest, after bytes: Int) -> ServerStep {
        .raw(String(components(request, [:]).body.dropFirst(bytes)))
    }

    private func components(_ request: ReceivedRequest, _ headers: [String: String]) -> (Int, [String: String], body: String) {
        let tag = tag.withLock { $0 }
        var fields = headers
        fields["ETag"] = tag
        guard let range = Self.range(request)?.clamped(to: 0..<content.count), request.headers["if-range"].map({ $0 == tag }) ?? true else {
            return (200, fields, text)
        }
        guard !range.isEmpty else { return (416, ["Content-Range": "bytes */\(content.count)"], "") }
        fields["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.count)"
        return (206, fields, String(decoding: content[range], as: UTF8.self))
    }
}
