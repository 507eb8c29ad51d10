/// A step that a ``ScriptedServer`` performs for a request.
package enum ServerStep: Sendable {
    /// Reads a number of bytes of the body; nil for the rest of the body. Reads whole chunks of a chunked body, until at least this
    /// number of bytes has been read.
    case read(Int?)
    /// Reads and discards a number of bytes of the encoded body, including its chunk framing.
    case skip(Int)
    /// Reads the rest of the body, and sends a response with a status, headers and a body. Adds `Content-Length`, unless the status is 204.
    /// The response to `HEAD` has no body.
    case answer(Int, [String: String] = [:], body: String = "")
    /// Sends a text unchanged, and nothing else.
    case raw(String)
    /// Waits until the client closes the connection or the server is stopped.
    case silence
    /// Waits until the client closes the connection or the server is stopped, and then calls a closure of the test.
    case end(@Sendable () -> Void)
    /// Closes the connection normally. Bytes that the server sent before still arrive.
    case close
    /// Resets the connection.
    case reset
    /// Calls a closure of the test.
    case call(@Sendable () -> Void)

    /// A response of a tus server, with its version.
    package static func tus(_ status: Int, _ headers: [String: String] = [:], body: String = "") -> ServerStep {
        .answer(status, headers.merging(["Tus-Resumable": "1.0.0"]) { given, _ in given }, body: body)
    }
}

/// Performs the steps of a script for one request.
struct StepPlayer {
    let stream: SocketStream
    let request: ReceivedRequest
    /// Called after each `read` with the bytes of the body that were read so far, and with the trailers.
    let recordBody: (_ body: [UInt8], _ trailers: [String: String]) -> Void
    private var body: [UInt8] = []
    private var isBodyComplete: Bool

    init(
        stream: SocketStream, request: ReceivedRequest, recordBody: @escaping (_ body: [UInt8], _ trailers: [String: String]) -> Void
    ) {
        self.stream = stream
        self.request = request
        self.recordBody = recordBody
        isBodyComplete = !request.isChunked && request.contentLength == 0
    }

    /// Performs the steps in order, until one ends the connection.
    ///
    /// - Returns: Whether the connection may be reused.
    mutating func play(_ steps: [ServerStep]) -> Bool {
        for step in steps {
            guard perform(step) else { return false }
        }
        return true
    }

    private mutating func perform(_ step: ServerStep) -> Bool {
        switch step {
        case .read(let count) where request.isChunked:
            return readChunks(atLeast: count)
        case .read(let count):
            let wanted = (count ?? request.contentLength) - (count == nil ? body.count : 0)
            let bytes = stream.read(wanted)
            body += bytes
            isBodyComplete = body.count >= request.contentLength
            recordBody(body, [:])
            return bytes.count == wanted
        case .skip(let count):
            return stream.skip(count)
        case .answer(let status, let headers, let text):
            if !isBodyComplete, !perform(.read(nil)) { return false }
            let lines = headers.map { "\($0.key): \($0.value)\r\n" }.joined()
            let length = status == 204 ? "" : "Content-Length: \(text.utf8.count)\r\n"
            return stream.write("HTTP/1.1 \(status) Scripted\r\n\(lines)\(length)\r\n\(request.method == "HEAD" ? "" : text)")
        case .raw(let text):
            return stream.write(text)
        case .silence:
            stream.waitForEnd()
            return false
        case .end(let body):
            stream.waitForEnd()
            body()
            return false
        case .close:
            stream.endWriting()
            stream.waitForEnd()
            return false
        case .reset:
            stream.reset()
            return false
        case .call(let body):
            body()
            return true
        }
    }

    /// Reads chunks until `count` more bytes are available. If `count` is nil, reads the rest of the body and the trailers.
    private mutating func readChunks(atLeast count: Int?) -> Bool {
        let wanted = count.map { body.count + $0 }
        while !isBodyComplete, wanted.map({ body.count < $0 }) ?? true {
            guard let chunk = stream.readChunk() else { return false }
            body += chunk
            guard chunk.isEmpty else { continue }
            isBodyComplete = true
            var lines: [String] = []
            while let line = stream.readLine(), !line.isEmpty { lines.append(line) }
            recordBody(body, ReceivedRequest.parse(lines))
            return true
        }
        recordBody(body, [:])
        return true
    }
}
