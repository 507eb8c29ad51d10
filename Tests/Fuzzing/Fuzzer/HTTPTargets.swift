import Foundation
import SystemPackage
import TransferCore
import TransportSupport

@testable import CurlEngine
@testable import HTTPSupport
@testable import TransportHTTP

/// Targets for the responses of HTTP servers, and for the stored state of downloads.
enum HTTPTargets {
    private static let secrets = ["Basic dXNlcjpwYXNzd29yZA==", "Bearer token", "signature"]

    /// The input is a response, as libcurl passes it to the engine: the lines of the header sections, an empty line, and the body.
    static func responses(_ input: [UInt8]) {
        guard let response = response(input), let origin = URL(string: "https://example.com/").flatMap(Origin.init) else { return }
        _ = (response.location, response.refusesClientCertificate, response.requiresTLS)
        if let target = response.redirection(ofGet: true, from: origin, or: []) {
            require(target.origin == origin, "A redirect stays at its origin.")
        }
        if let words = response.explanation(excluding: secrets) {
            require(words.unicodeScalars.count <= 200 && !words.repeats(secrets), "Messages are short and repeat no secret.")
        }
        for method in ["PUT", "POST", "GET"] {
            let parsed = endpointResponse(response, to: method, from: origin)
            _ = (parsed.forReceipt(), parsed.uploadFailure(isGivenURL: true), parsed.failure("upload"))
        }
        let head = HTTPResponseHead(status: response.status, headers: response.headers)
        let remote = RemoteFile(head)
        if let text = remote.digest?.text { require(Checksum(text) == remote.digest, "An encoded digest decodes to the same digest.") }
        if let checkpoint = try? remote.checkpoint(of: ByteRanges(upTo: 7)) {
            require(RemoteFile(checkpoint) == remote, "An encoded checkpoint decodes to the same file: \(remote)")
        }
        require(!remote.differs(from: remote, response.headers), "A file is the same version as itself.")
    }

    static func endpointResponse(_ response: HTTPResponse, to method: String, from origin: Origin) -> EndpointResponse {
        EndpointResponse(
            response: response, method: method, origin: origin, latency: .zero, secrets: secrets, sentCredentials: method == "PUT",
            withheldCredentials: false, credentialsWereAccepted: method == "POST", proxyDescription: nil, credentials: [])
    }

    /// Parses the bytes of a response in the same way as ``CurlEngine``. Returns nil if the response is incomplete or invalid.
    ///
    /// - Parameter observe: Called with each interim response, like ``HTTPRequest/observeInterimResponse``.
    static func response(_ input: [UInt8], observingInterims observe: (HTTPResponseHead) -> Void = { _ in }) -> HTTPResponse? {
        var reader = InputReader(input)
        var collector = ResponseCollector(maximumHeaders: 4_096, maximumBody: 1_024)
        while !reader.isAtEnd, !collector.isFinal {
            let line = Array(reader.line()) + [UInt8(ascii: "\n")]
            guard unsafe line.withUnsafeBytes({ unsafe collector.addHeaderLine($0) }) else { return nil }
            if let head = collector.interimHead { observe(head) }
        }
        let body = Array(reader.rest)
        _ = unsafe body.withUnsafeBytes { unsafe collector.addBody($0) }
        _ = collector.isWhole
        guard collector.isFinal else { return nil }
        let head = collector.head
        return HTTPResponse(
            status: head.status, headers: head.headers, body: collector.body, isBodyTruncated: collector.isBodyTruncated, version: .http1,
            effectiveURL: "https://example.com/files/", sent: SentBytes())
    }

    /// The input is the value of `Content-Disposition`.
    static func contentDisposition(_ input: [UInt8]) {
        guard let name = SuggestedName(["Content-Disposition": String(decoding: input, as: UTF8.self)]) else { return }
        let bytes = Array(name.component.string.utf8)
        require((1...255).contains(bytes.count), "A name has 1 to 255 bytes.")
        require(name.component.kind == .regular, "A name is not . or ..")
        require(!bytes.contains { $0 == 0 || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") || $0 < 0x20 }, "A name is one component.")
        require(!".-~".utf8.contains(bytes[0]), "A name is not hidden, and is neither an option nor a home folder.")
    }

    /// The input contains the values of `Retry-After` and `Date`, one per line.
    static func retryAfter(_ input: [UInt8]) {
        var reader = InputReader(input)
        let headers: HTTPHeaders = ["Retry-After": reader.text(), "Date": reader.text()]
        for now in [0, 1_700_000_000, Int(Int32.max)] {
            guard let wait = headers.retryAfter(now: now) else { continue }
            require(wait >= .zero, "A wait is not negative.")
            // The queue converts the wait to a date and stores it. The conversion must not trap.
            _ = Date(timeIntervalSince1970: TimeInterval(now) + wait / .seconds(1))
        }
    }

    /// The input starts with a status, the number of parallel requests, and the minimum file size for parallel requests. The values of
    /// `Content-Range`, `Content-Length` and other headers follow, one per line. The rest contains the four ranges that were already received.
    static func ranges(_ input: [UInt8]) {
        var reader = InputReader(input)
        let status = [200, 206, 416][Int(reader.byte()) % 3]
        let parallel = Int(reader.byte() % 8)
        let threshold = reader.number()
        let headers: HTTPHeaders = [
            "Content-Range": reader.text(), "Content-Length": reader.text(), "Last-Modified": reader.text(), "Date": reader.text(),
            "Repr-Digest": reader.text(), "ETag": reader.text(),
        ]
        if let range = ContentRange(headers) {
            require(range.start ?? 0 >= 0 && range.total ?? 0 >= 0, "An offset or size is not negative.")
        }
        let remote = RemoteFile(status: status, headers: headers)
        guard let length = remote.length, length <= RemoteFile.maximumLength else { return }
        var received = ByteRanges()
        for _ in 0..<4 {
            let start = min(max(0, reader.number()), length)
            received.insert(start..<min(length, start + Int64(reader.byte()) << 20))
        }
        check(received, of: length, parallel, threshold)
    }

    private static func check(_ received: ByteRanges, of length: Int64, _ parallel: Int, _ threshold: Int64) {
        let gaps = received.gaps(upTo: length)
        let missing = gaps.reduce(Int64(0)) { $0 + Int64($1.count) }
        require(received.end > length || missing + received.count == length, "Gaps and ranges cover the whole file.")
        var plan = RangePlan(parallel: parallel, threshold: threshold)
        _ = plan.first.headerValue
        plan.add(gaps, of: length)
        require(plan.connections(of: length, underWay: 0) <= max(1, parallel), "The number of requests has a limit.")
        var requested: Int64 = 0
        for _ in 0..<200 {
            guard let range = plan.nextRange() else { return require(requested == missing, "The ranges cover all missing bytes.") }
            require(range.headerValue != nil || range == .whole || range.end != nil, "A partial range has a header value or an end.")
            requested += (range.end ?? length) - range.start
        }
    }

    /// The input is a stored checkpoint. Its first eight bytes are the number of confirmed bytes.
    static func checkpoint(_ input: [UInt8]) {
        var reader = InputReader(input)
        let stored = Checkpoint(data: Data(reader.rest.dropFirst(8)), confirmed: reader.number())
        guard let remote = RemoteFile(stored) else { return }
        let received = remote.received(upTo: max(0, stored.confirmed))
        require(received.count >= 0 && received.prefix >= 0, "A length is not negative.")
        if let again = try? remote.checkpoint(of: received) {
            require(RemoteFile(again)?.received(upTo: again.confirmed) == received, "Encoded ranges decode to the same ranges: \(received)")
        }
        let length = min(max(0, remote.length ?? received.end), RemoteFile.maximumLength)
        check(received, of: length, 4, 64 << 20)
    }
}
