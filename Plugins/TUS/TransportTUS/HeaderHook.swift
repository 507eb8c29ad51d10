public import CurlEngine
public import Foundation

/// What a request is for that an app's header hook is asked about.
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
}

/// An app's function that may add, change and remove headers of a request before it is sent, to sign it or to give it a fresh token.
///
/// Called from a task of the transport's before every request that goes to the endpoint's origin or to one that its setting `origins` lists,
/// with the headers that are about to be sent, credentials included; gives back the headers to send. When the attempt is cancelled, nobody
/// waits for it any longer, and its task is cancelled.
///
/// The headers `Upload-…`, `Tus-…`, `Content-Length`, `Content-Type`, `Host`, `Expect`, `Connection`, `Transfer-Encoding`, `Trailer`, `TE` and
/// `X-HTTP-Method-Override` are the transport's own: a hook that changes one ends the attempt.
///
/// An error that it throws ends the attempt: a `TransferError` as it is, and any other one as a passing failure.
public typealias HeaderHook = @Sendable (_ request: RequestInfo, _ headers: HTTPHeaders) async throws -> HTTPHeaders
