public import Foundation
public import TransferCore

/// What a request is for that an app's header hook is asked about. Made by the transports that have such a hook.
public struct RequestInfo: Sendable {
    /// Why the hook is asked.
    public enum Reason: Hashable, Sendable {
        /// A request is about to be sent.
        case request
        /// The server answered with 401 or 403. What the request carried is to be replaced, for example by a new token; the request is then sent
        /// once more.
        case rejected
    }

    /// The method as it goes on the wire.
    public var method: String
    /// The absolute URL. That of an upload is a capability: not to be logged.
    public var url: String
    /// The ID of the session that the file belongs to; empty for requests that belong to none, such as the removal of an upload.
    public var session: String
    /// The position of the item in its session, from 0.
    public var item: Int64
    /// The app's own value of the session, as JSON.
    public var context: Data?
    /// Which attempt at the file it is, from 1.
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

/// An app's function that may add, change and remove headers of a request before it is sent, to sign it or to give it a fresh token.
///
/// Called from a task of the transport's before every request that goes to the endpoint's origin or to one that its setting `origins` lists,
/// with the headers that are about to be sent, credentials included; gives back the headers to send. When the attempt is cancelled, nobody
/// waits for it any longer, and its task is cancelled.
///
/// The headers `Content-Length`, `Content-Type`, `Host`, `Expect`, `Connection`, `Transfer-Encoding`, `Trailer` and `TE` are the transport's own; of
/// tus also `Upload-…`, `Tus-…` and `X-HTTP-Method-Override`, and of plain HTTP `Range`, `If-Range` and `Content-Range`. A hook that changes one ends
/// the attempt.
///
/// An error that it throws ends the attempt: a `TransferError` as it is, and any other one as a passing failure.
public typealias HeaderHook = @Sendable (_ request: RequestInfo, _ headers: HTTPHeaders) async throws -> HTTPHeaders

extension TransferError.Code {
    /// A header that an app gave is one that it can't give.
    public static let invalidHeader = Self(rawValue: "invalidHeader")
}
