import Foundation
import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOPosix

/// The error for a connection that ended during a request, or that must be closed after the request.
struct ConnectionEnded: Error {}

/// A request and its response. Used only by the task that handles the request.
final class Exchange {
    let connection: Connection
    let method: String
    let path: String
    /// The length of the body in bytes, from `Content-Length`; nil if the body has a transfer encoding, and 0 without either header.
    let bodyLength: Int64?
    private(set) var isBodyAtEnd: Bool
    /// `http://host`, with the host name that the client used, or the local address if the request has no host name. The name can be a
    /// proxy's name (RFC 9110, section 7.2).
    let origin: String
    /// Whether the request has no host name, or a host name that always means this machine (RFC 6761, section 6.3).
    let hasLoopbackHost: Bool
    private let headers: HTTPFields
    private var body: RequestBody.AsyncIterator
    private var writer: ResponseWriter?
    private var expectsContinue: Bool
    private var receivedSize: Int64 = 0
    /// Received bytes that ``next(upTo:)`` has not returned yet, because they exceeded its limit.
    private var rest = ByteBuffer()

    init(_ request: Request, _ writer: consuming ResponseWriter, on connection: Connection) {
        self.connection = connection
        headers = request.headers
        method = request.head.tusMethod
        path = request.head.targetPath
        origin = request.head.authority.map { "http://\($0)" } ?? connection.origin
        hasLoopbackHost = request.head.authority.map(Self.isLoopback) ?? true
        // The HTTP decoder rejects a length that is not a number, and a length together with a transfer encoding.
        bodyLength = request.headers.contains(.transferEncoding) ? nil : request.headers[.contentLength].flatMap { Int64(digits: $0) } ?? 0
        isBodyAtEnd = bodyLength == 0
        expectsContinue = request.headers[.expect]?.lowercased() == "100-continue"
        body = request.body.makeAsyncIterator()
        self.writer = consume writer
    }

    /// Whether an authority always means this machine.
    ///
    /// - Parameter authority: A host, with or without a port.
    private static func isLoopback(_ authority: String) -> Bool {
        guard let components = URLComponents(string: "http://\(authority)"), components.user == nil,
            let host = components.host?.lowercased()
        else { return false }
        if host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]" || host == "::1" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return numbers.count == 4 && numbers.first == 127 && !numbers.contains(nil)
    }

    /// The value of a header, ignoring the case of the name. Joins several values with commas.
    subscript(name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }

    /// The value of a trailer field, available after the body was read to the end.
    func trailer(_ name: String, in order: ArrivalOrder) -> String? {
        HTTPField.Name(name).flatMap { order.trailers(on: connection.channel)?[$0] }
    }

    /// Whether the client still waits for 100 (Continue) before it sends the body.
    var isAwaitingBody: Bool { expectsContinue && !isBodyAtEnd }

    /// Returns the next bytes of the body, at most `limit`; nil at the end.
    ///
    /// - Throws: An error if the connection ended before the end of the body, or if the received bytes are not valid HTTP.
    @concurrent
    func next(upTo limit: Int64 = .max) async throws -> ByteBuffer? {
        if rest.readableBytes == 0 {
            guard let received = try await receive() else { return nil }
            rest = received
        }
        let bytes = rest.readSlice(length: Int(clamping: min(limit, Int64(rest.readableBytes))))
        if rest.readableBytes == 0, receivedSize == bodyLength { isBodyAtEnd = true }
        return bytes
    }

    @concurrent
    private func receive() async throws -> ByteBuffer? {
        guard !isBodyAtEnd else { return nil }
        if expectsContinue { try await sendContinue() }
        guard let received = try await body.next() else {
            guard bodyLength == nil else { throw ConnectionEnded() }
            isBodyAtEnd = true
            return nil
        }
        receivedSize += Int64(received.readableBytes)
        return received
    }

    @concurrent
    private func sendContinue() async throws {
        expectsContinue = false
        guard let writer = writer.take() else { return }
        try await writer.writeInformationalHead(HTTPResponse(status: .continue))
        self.writer = consume writer
    }

    /// Sends an interim response with the status 104 (Upload Resumption Supported).
    @concurrent
    func sendInterim(_ headers: [(String, String)]) async throws {
        guard let writer = writer.take() else { return }
        var fields = HTTPFields()
        for (name, value) in headers { if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) } }
        let status = HTTPResponse.Status(code: 104, reasonPhrase: "Upload Resumption Supported")
        try await writer.writeInformationalHead(HTTPResponse(status: status, headerFields: fields))
        self.writer = consume writer
    }

    /// Sends the response. Call this method once.
    ///
    /// - Parameter closing: Whether to announce that the connection closes afterwards.
    @concurrent
    func send(_ response: Response, closing: Bool) async throws {
        guard let writer = writer.take() else { return }
        let body =
            if method == "HEAD" { ResponseBody() } else if let content = response.content { self.body(of: content) } else {
                ResponseBody(byteBuffer: ByteBuffer(string: response.body))
            }
        try await writer.write(response: response.head(closing: closing), body: body)
    }

    private func body(of content: Content) -> ResponseBody {
        ResponseBody(contentLength: content.range.count) { [connection] writer in
            let end = content.cut.map { content.range.lowerBound + $0 } ?? content.range.upperBound
            var position = content.range.lowerBound
            while position < end {
                guard let transferable = await content.faults.transferableBytes(from: position, on: connection) else {
                    throw ConnectionEnded()
                }
                let limit = Int(min(end - position, content.rate.map { max(1, $0 / 10) } ?? 256 * 1024, 256 * 1024, transferable))
                let bytes = try await NIOThreadPool.singleton.runIfActive { [position] in
                    try ByteBuffer(reading: content.file.descriptor, at: position, atMost: limit)
                }
                guard bytes.readableBytes > 0 else { throw ConnectionEnded() }
                // Add the bytes to the statistics before sending them, so that the statistics contain all bytes that the client has received.
                content.sent(bytes.readableBytes)
                do {
                    try await writer.write(bytes)
                } catch {
                    content.sent(-bytes.readableBytes)
                    throw error
                }
                position += Int64(bytes.readableBytes)
                if let rate = content.rate { try await Task.sleep(for: .seconds(Double(bytes.readableBytes) / Double(max(rate, 1)))) }
            }
            guard content.cut == nil else {
                // Closing both directions would drop unsent bytes.
                try? await connection.channel.close(mode: .output)
                throw ConnectionEnded()
            }
            try await writer.finish(nil)
        }
    }
}
