public import Foundation
public import TransferCore

/// The request for which an app's header hook is called.
public struct RequestInfo: Sendable {
    /// Why the hook is called.
    public enum Reason: Hashable, Sendable {
        /// A request is about to be sent.
        case request
        /// The server responded with 401 or 403. Replace the rejected headers, for example with a new token. The transport then sends the
        /// request once more.
        case rejected
    }

    /// The method, as it will be sent.
    public var method: String
    /// The absolute URL. The URL of an upload may be secret: do not log it.
    public var url: String
    /// The name of the account; empty for requests outside a session, such as the removal of an upload.
    public var account: String
    /// The address of the endpoint, without its query.
    public var endpoint: String
    /// The ID of the session that the file belongs to; empty for requests outside a session, such as the removal of an upload.
    public var session: String
    /// The position of the item or file in its session, counted from 0; 0 for requests outside a session.
    public var item: Int64
    /// The app's context for the session, as JSON; nil if the session has none.
    public var context: Data?
    /// The number of the attempt for the file, counted from 1.
    public var attempt: Int
    /// Why the hook is called.
    public var reason: Reason

    /// Decodes ``context``; nil if the session has none.
    ///
    /// - Throws: `DecodingError` if the context has another type.
    public func context<Value: Decodable>(as type: Value.Type) throws -> Value? {
        try context.map { try JSONDecoder().decode(type, from: $0) }
    }

    package init(method: String, url: String, endpoint: String, origin: AttemptOrigin, attempt: Int) {
        self.method = method
        self.url = url
        self.endpoint = endpoint
        account = origin.account
        session = origin.session
        item = origin.item
        context = origin.context
        self.attempt = attempt
        reason = .request
    }
}

/// An app's function that adds, changes or removes headers of a request before it is sent, for example to sign it or to add a fresh token.
///
/// A transport calls the hook from one of its tasks, before each request (see ``HeaderReuse``) to a trusted origin: the endpoint's origin,
/// or an origin in the setting `origins`. After a redirect to another origin, the transport does not call the hook. The hook receives the headers of
/// the request, including credentials, and returns the headers to send. When the attempt is cancelled, the hook's task is cancelled, and
/// the attempt does not wait for the hook.
///
/// The headers `Content-Length`, `Content-Type`, `Host`, `Expect`, `Connection`, `Transfer-Encoding`, `Trailer`, `TE`, `Range` and
/// `If-Range` are reserved. With tus, `Upload-…`, `Tus-…`, `X-HTTP-Method-Override`, `Content-Disposition`,
/// `Content-Digest`, `Repr-Digest` and `Want-Repr-Digest` are also reserved; with plain HTTP, `Content-Range` is. Changing a reserved header
/// ends the attempt with an error.
///
/// If a response repeats a secret, the transport removes the secret from receipts, errors and logs. The values of `Authorization`,
/// `Proxy-Authorization` and `Cookie` are secret. In other headers that the hook adds or changes, each word of at least 8 characters is
/// secret. Headers that describe the request or its content are exempt, such as `Accept`, `User-Agent`, `X-Request-ID` and
/// `Idempotency-Key`.
///
/// An error from the hook ends the attempt. The attempt throws a `TransferError` or `CancellationError` unchanged; any other error becomes
/// a transient failure.
public typealias HeaderHook = @Sendable (_ request: RequestInfo, _ headers: HTTPHeaders) async throws -> HTTPHeaders

/// When a transport reuses the headers that an app's header hook returned.
///
/// ```swift
/// // One token for each file, including its retries.
/// let transport = TUSTransport(reusingHeaders: .untilRejected) { request, headers in
///     var headers = headers
///     headers["Authorization"] = "Bearer \(try await tokens.token(for: request.item))"
///     return headers
/// }
/// ```
public enum HeaderReuse: Hashable, Sendable {
    /// The transport calls the hook before each request. Use this for headers that sign the method or the URL.
    case never
    /// The transport calls the hook before the first request for each file. It repeats the hook's changes in the file's other requests to the same
    /// origin, including retries, until the server responds with 401 or 403.
    ///
    /// The headers are only in memory, so the hook is also called after a restart of the process. A transport remembers the headers of up to
    /// 1,000 files. If the transport forgets headers, or if the headers of another file at the same endpoint were rejected and renewed, it
    /// calls the hook again. It always calls the hook for requests outside a session, such as the removal of an upload.
    case untilRejected
}

extension TransferError.Code {
    /// An app's header hook changed a reserved header.
    public static let invalidHeader = Self(rawValue: "invalidHeader")
}
