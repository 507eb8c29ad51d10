import CurlEngine
import Foundation
import HTTPSupport
import Locking
import TransferCore
import TransportSupport

/// An endpoint at a tus server or at a server of the IETF protocol, for the requests of one operation: an attempt, a check of the endpoint, or
/// the removal of an upload.
struct TUSServer {
    /// The version of the protocol. Changes when an attempt has found the version that the server supports.
    var dialect: Dialect
    /// The URL for creating uploads: the endpoint's address, or the creation URL of the attempt.
    let address: String
    let origin: Origin
    /// Whether the attempt has its own creation URL.
    let hasCreationURL: Bool
    let options: TUSOptions
    let profiles: ServerProfileCache
    let client: EndpointClient

    /// - Parameter attempt: The attempt that the requests belong to; nil for requests outside a session.
    /// - Throws: A ``TransferError`` for an invalid endpoint. Its class is ``FailureClass/unsupported`` if the endpoint does not trust the
    ///   attempt's creation URL.
    init(
        _ endpoint: Endpoint, credentials: any CredentialProvider, resources: TransportResources, attempt: FileAttempt? = nil
    ) throws(TransferError) {
        let url = try endpoint.validate()
        guard let endpointOrigin = Origin(url), var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw TransferError(.permanent, .invalidEndpoint, "The endpoint address must begin with https:// or http:// for tus.")
        }
        let userName = components.user
        try ReservedHeaders.tus.check(endpoint.credentials)
        components.user = nil
        options = try TUSOptions(settings: endpoint.settings)
        hasCreationURL = attempt?.options.creationURL != nil
        if let creationURL = attempt?.options.creationURL {
            origin = try options.origin(ofCreationURL: creationURL, at: endpoint, endpointOrigin)
            address = creationURL
        } else {
            origin = endpointOrigin
            address = components.string ?? endpoint.address
        }
        client = EndpointClient(
            endpoint, origin: endpointOrigin, userName: userName, options: options.requests,
            sessionHeaders: try ReservedHeaders.tus.sessionHeaders(attempt?.options.headers ?? [:]), credentials: credentials,
            resources: resources.client, context: attempt.map(RequestContext.init))
        profiles = resources.profiles
        dialect = resources.dialect
    }

    /// Sends one request and returns the final response, regardless of its status; see ``EndpointClient/send(_:)``.
    ///
    /// After a 401 or 403, this function never repeats a `PATCH`, and after a 400, it repeats only requests without content. The
    /// caller must request the server's offset before the caller sends content again.
    ///
    /// - Parameters:
    ///   - expectsContinue: Whether to send `Expect: 100-continue`, unless the server has rejected it before.
    ///   - trailer: A checksum to update with the body and to send after it (extension *checksum-trailer*).
    ///   - sink: Receives the body of the response.
    ///   - threads: The threads on which the sink writes.
    ///   - observeInterim: Observes interim responses, with the URL of the request, which differs from `address` after a redirect; see
    ///     ``HTTPRequest/observeInterimResponse``.
    ///   - renewalsBeforeRejection: The value of the client's `renewals` before the request was first sent; nil unless the request is
    ///     repeated after rejected credentials.
    /// - Throws: The errors of ``EndpointClient/send(_:)``.
    func send(
        _ kind: TUSRequest, to address: String, headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none, expectsContinue: Bool = false,
        trailer: RunningChecksum? = nil, sink: (any HTTPResponseSink)? = nil, writingOn threads: WorkerThreads? = nil,
        renewalsBeforeRejection: Int? = nil, observeInterim: (@Sendable (HTTPResponseHead, _ url: String) -> Void)? = nil,
        pacing: (@Sendable (Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> TUSResponse {
        var request = HTTPRequest(method: kind.rawValue, url: address, headers: headers, body: body, expectsContinue: expectsContinue)
        if kind != .options || dialect.ietf != nil { request.headers[dialect.versionHeader] = dialect.version }
        if kind == .create, dialect.ietf != nil { request.method = options.creationMethod.rawValue }
        if kind == .patch, dialect.ietf == nil, overridesMethod {
            request.method = TUSRequest.create.rawValue
            request.headers["X-HTTP-Method-Override"] = kind.rawValue
        }
        if trailer != nil { request.headers["Trailer"] = dialect.checksumHeader }
        var outgoing = EndpointRequest(
            request, secrets: EndpointRequest.signatures(in: address), sink: sink, writingOn: threads, pacing: pacing, progress: progress)
        outgoing.repeatsAfterRejection = kind != .patch
        outgoing.usesHTTP1 = profiles.quirks(of: self.address).breaksInterimResponses
        outgoing.renewalsBeforeRejection = renewalsBeforeRejection
        outgoing.mayResultFromBrokenConnection = { [dialect] in
            body.length ?? 0 == 0 && !dialect.isDeclared(in: $0.headers) && $0.mayResultFromBrokenConnection
        }
        if let observeInterim {
            outgoing.prepare = { request in
                let url = request.url
                request.observeInterimResponse = { observeInterim($0, url) }
            }
        }
        outgoing.redirectLoopClass = kind.targetsEndpoint ? .unreachable : .protocolViolation
        let hash = trailer.map { Locked($0) }
        if let trailer, let hash, let checksumHeader = dialect.checksumHeader {
            outgoing.prepare = { request in
                hash.withLock { $0 = trailer }
                if case .file = request.body {
                    request.observeBody = { bytes in hash.withLock { hash in unsafe bytes.withUnsafeBytes { unsafe hash.update($0) } } }
                }
                request.trailers = { [checksumHeader: hash.withLock { $0.header }] }
            }
        }
        let tusResponse = TUSResponse(kind, try await client.send(&outgoing), server: self, contentHash: hash?.withLock { $0 })
        // Many servers respond to OPTIONS without checking the credentials.
        let isAccepted = kind == .get ? (200..<300).contains(tusResponse.status) : tusResponse.isSuccess && kind != .options
        if isAccepted { client.recordAcceptedCredentials(tusResponse.endpointResponse) }
        return tusResponse
    }

    private var overridesMethod: Bool { options.methodOverride || profiles.quirks(of: address).needsMethodOverride }

    /// Sends each later `PATCH` to this endpoint as `POST`.
    ///
    /// - Returns: False if `PATCH` was already sent as `POST`, or the protocol is the IETF's; otherwise true.
    func beginOverridingMethod() -> Bool {
        guard dialect.ietf == nil, !overridesMethod else { return false }
        profiles.learn(of: address) { $0.needsMethodOverride = true }
        return true
    }
}

enum TUSRequest: String {
    case options = "OPTIONS"
    case create = "POST"
    case head = "HEAD"
    case patch = "PATCH"
    case delete = "DELETE"
    /// Not part of the protocol. Requests the content from servers that offer it.
    case get = "GET"

    /// Whether the request is sent to the endpoint's address, rather than to an upload.
    var targetsEndpoint: Bool { self == .create || self == .options }
}

/// The resources that the attempts of one transport share.
struct TransportResources: Sendable {
    let client: ClientResources
    let profiles: ServerProfileCache
    let dialect: Dialect
}
