package import CurlEngine
import Foundation
package import TransferCore
package import TransportSupport

/// One request of an attempt, without the headers that ``EndpointClient`` adds.
package struct EndpointRequest {
    package var request: HTTPRequest
    /// Values that errors and receipts must not repeat, such as signatures in a URL.
    package var secrets: [String]
    private(set) var sink: (any HTTPResponseSink)?
    private(set) var threads: WorkerThreads?
    private(set) var pacing: (@Sendable (Int) -> Allowance)?
    private(set) var progress: (@Sendable (Int64) -> Void)?

    /// Changes the request before each send, for example to observe the body from its first byte.
    package var prepare: ((inout HTTPRequest) -> Void)?
    /// Returns whether the body can be sent again. If not, the client returns the response instead of repeating the request.
    package var canRepeat: () -> Bool = { true }
    /// Whether to repeat the request with renewed headers after a 401 or 403.
    package var repeatsAfterRejection = true
    /// The value of ``EndpointClient/renewals`` before the rejected request was sent; nil unless the credentials were rejected.
    package var renewalsBeforeRejection: Int?
    /// Whether to use HTTP/1.1, regardless of the endpoint's options.
    package var usesHTTP1 = false
    /// Returns whether a broken connection may have caused the response (some servers respond to a broken connection with 400). If so, the
    /// client repeats the request once, on a new connection.
    package var mayResultFromBrokenConnection: (HTTPResponse) -> Bool = { $0.mayResultFromBrokenConnection }
    /// Returns whether to follow a redirect to a trusted URL. If not, the redirect is the final response.
    package var followsRedirect: (_ url: String) -> Bool = { _ in true }
    /// The class of the error for too many redirects.
    package var redirectLoopClass = FailureClass.unreachable

    /// - Parameters:
    ///   - request: The request. `expectsContinue` has no effect for servers that have rejected `Expect` before.
    ///   - secrets: Values that errors and receipts must not repeat.
    ///   - sink: Receives the body of the response; nil to keep its first bytes in memory.
    ///   - threads: The threads on which the sink writes.
    ///   - pacing: Returns the allowance for the next bytes of the request's body or, with a sink, of the response's body. Called on a thread of
    ///     the engine. Must not block.
    ///   - progress: Called with the number of transferred bytes, on a thread of the engine. Must not block.
    package init(
        _ request: HTTPRequest, secrets: [String], sink: (any HTTPResponseSink)? = nil, writingOn threads: WorkerThreads? = nil,
        pacing: (@Sendable (Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) {
        self.request = request
        self.secrets = secrets
        self.sink = sink
        self.threads = threads
        self.pacing = pacing
        self.progress = progress
    }

    /// Whether sending the request twice has the same effect as sending it once (RFC 9110, section 9.2.2). Set this property only for methods
    /// that libcurl does not retry automatically; see ``HTTPRequest``.
    package var isIdempotent = false

    /// Returns whether to repeat the request on a new connection: the server may have closed the reused connection while the connection was
    /// idle, and ``isIdempotent`` is set.
    func canRepeat(after error: CurlEngineError) -> Bool {
        error.mayResultFromIdleConnection && isIdempotent && !request.needsNewConnection && canRepeat()
    }

    /// Returns the values in a URL's query that may be secret: those of at least 8 characters. Shorter values are most likely flags and numbers.
    package static func signatures(in url: String) -> [String] {
        url.split(separator: "?", maxSplits: 1).dropFirst().flatMap { $0.split(separator: "&") }.flatMap { field in
            let value = field.split(separator: "=", maxSplits: 1).last.map(String.init) ?? ""
            return value.count < 8 ? [] : [value, value.removingPercentEncoding ?? value]
        }
    }
}
