public import Foundation
public import TransferCore

/// The request that an app's header hook is asked about. Made by the transports that have such a hook.
public struct RequestInfo: Sendable {
    /// Why the hook is asked.
    public enum Reason: Hashable, Sendable {
        /// A request is about to be sent.
        case request
        /// The server answered with 401 or 403. Replace the rejected headers, for example with a new token; the request is then sent once
        /// more.
        case rejected
    }

    /// The method as sent.
    public var method: String
    /// The absolute URL. The URL of an upload is a capability: do not log it.
    public var url: String
    /// The ID of the session that the file belongs to; empty for requests outside a session, such as the removal of an upload.
    public var session: String
    /// The position of the item in its session, from 0.
    public var item: Int64
    /// The app's own value of the session, as JSON.
    public var context: Data?
    /// The number of the attempt at the file, from 1.
    public var attempt: Int
    /// Why the hook is asked.
    public var reason: Reason

    package init(method: String, url: String, origin: AttemptOrigin, attempt: Int) {
        self.method = method
        self.url = url
        session = origin.session
        item = origin.item
        context = origin.context
        self.attempt = attempt
        reason = .request
    }
}

/// An app's function that adds, changes or removes headers of a request before it is sent, for example to sign it or add a fresh token.
///
/// Called from a task of the transport before every request to the endpoint's origin or to an origin in its setting `origins`, with the
/// headers of the request, including credentials; returns the headers to send. Cancelling the attempt cancels the hook's task and does not
/// wait for it.
///
/// The headers `Content-Length`, `Content-Type`, `Host`, `Expect`, `Connection`, `Transfer-Encoding`, `Trailer` and `TE` are reserved; so
/// are, for tus, `Upload-…`, `Tus-…` and `X-HTTP-Method-Override`, and, for plain HTTP, `Range`, `If-Range` and `Content-Range`. Changing
/// one ends the attempt with an error.
///
/// An error that the hook throws ends the attempt: a `TransferError` as it is, any other as a transient failure.
public typealias HeaderHook = @Sendable (_ request: RequestInfo, _ headers: HTTPHeaders) async throws -> HTTPHeaders

extension TransferError.Code {
    /// An app set a header that it can't set.
    public static let invalidHeader = Self(rawValue: "invalidHeader")
}
