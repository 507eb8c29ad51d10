package import CurlEngine
import Foundation
import Logging
package import TransferCore

/// The attempt that requests belong to, for the app's header hook and for logs.
package struct RequestContext: Sendable {
    let origin: AttemptOrigin
    let number: Int
    let logger: Logger

    package init(_ attempt: FileAttempt) {
        origin = attempt.origin
        number = attempt.number
        logger = attempt.logger
    }

    package init(_ attempt: ListingAttempt) {
        origin = attempt.origin
        number = 1
        logger = attempt.logger
    }
}

/// Sends the requests of one attempt to one endpoint.
///
/// A request to a trusted origin carries the headers of the endpoint, the session, the credentials and the app's hook. After a redirect to
/// another origin, the request carries none of them. The client follows redirects that keep the method and lead to a trusted origin or to the
/// request's own origin, but not from https to http (RFC 9110, section 15.4).
///
/// If the body can be sent again, the client repeats a request once in each of these cases: after a 401 or 403, if the app has a header hook and
/// the request allows this (``EndpointRequest/repeatsAfterRejection``); after a 400 that a broken connection may have caused; and for an
/// idempotent request, if the server may have closed the reused connection before the request arrived.
package struct EndpointClient: Sendable {
    private static let maximumRedirects = 5

    /// The origin of the endpoint's address.
    package let origin: Origin
    /// The endpoint's address. Renewal counts and accepted credentials are stored separately for each address.
    package let endpointAddress: String
    /// ``endpointAddress`` without its query.
    private let location: String
    let options: RequestOptions
    /// The headers of the endpoint and the session.
    private let configuredHeaders: HTTPHeaders
    private let credentials: EndpointCredentials
    private let resources: ClientResources
    private let context: RequestContext?
    private let logger: Logger
    /// The origins to which credentials and configured headers are sent, except after a redirect to another origin.
    private let trustedOrigins: Set<Origin>

    /// - Parameters:
    ///   - userName: The user name in the endpoint's address.
    ///   - context: The attempt that the requests belong to; nil for requests outside a session.
    package init(
        _ endpoint: Endpoint, origin: Origin, userName: String?, options: RequestOptions, sessionHeaders: HTTPHeaders,
        credentials provider: any CredentialProvider, resources: ClientResources, context: RequestContext?
    ) {
        self.origin = origin
        self.options = options
        configuredHeaders = sessionHeaders.reduce(into: options.sortedHeaders) { $0.append($1.name, $1.value) }
        self.resources = resources
        endpointAddress = endpoint.address
        location = endpoint.location
        trustedOrigins = options.trustedOrigins.union([origin])
        credentials = EndpointCredentials(references: endpoint.credentials, userName: userName, origin: origin, provider: provider)
        self.context = context
        logger = context?.logger ?? Logger(label: "TransferKit.\(endpoint.transport)")
        if let warning = credentials.cleartextWarning, resources.isFirst(warning) { logger.warning("\(warning)") }
    }

    /// The quirks that earlier responses of servers revealed.
    package var quirks: ServerQuirks { resources.quirks }

    package var hasHeaderHook: Bool { resources.hook != nil }

    /// The number of times that the app's hook has renewed the credentials of this endpoint.
    package var renewals: Int { resources.hook?.renewals(at: endpointAddress) ?? 0 }

    /// Sends a request and returns the final response, regardless of its status.
    ///
    /// - Parameter outgoing: The request. Each redirect changes its URL, even if the request fails afterwards.
    /// - Throws: A ``CurlEngineError`` if there is no complete response; a `TransferError` if the URL is invalid, a secret can't be read, the app's
    ///   hook fails, or the server redirects too often; the sink's error; or `CancellationError`.
    package func send(_ outgoing: inout EndpointRequest) async throws -> EndpointResponse {
        guard let initialOrigin = URL(string: outgoing.request.url).flatMap(Origin.init) else {
            throw TransferError(.permanent, .invalidEndpoint, "The URL of this file must begin with https:// or http://.")
        }
        outgoing.request.connection = try await connection()
        if outgoing.usesHTTP1 { outgoing.request.connection.httpVersion = .http1 }
        let expectsContinue = outgoing.request.expectsContinue
        var target = initialOrigin
        var isTrusted = trustedOrigins.contains(initialOrigin)
        var redirects = 0
        while redirects <= Self.maximumRedirects {
            outgoing.request.expectsContinue = expectsContinue && !quirks.refusesExpectation(target)
            let renewals = renewals
            let response: EndpointResponse
            do {
                response = try await sendOnce(outgoing, to: target, isTrusted: isTrusted)
            } catch let error as CurlEngineError where error.kind == .expectationRefused {
                quirks.recordRefusedExpectation(target)
                throw error
            } catch let error as CurlEngineError where outgoing.canRepeat(after: error) {
                outgoing.request.needsNewConnection = true
                continue
            }
            // The server can respond with 417 after the content was sent, because the client waits only briefly for 100 (Continue).
            if outgoing.request.expectsContinue, response.status == 417 { quirks.recordRefusedExpectation(target) }
            if response.status == 401 || response.status == 403, isTrusted, hasHeaderHook, outgoing.repeatsAfterRejection,
                outgoing.renewalsBeforeRejection == nil, outgoing.canRepeat()
            {
                outgoing.renewalsBeforeRejection = renewals
            } else if !outgoing.request.needsNewConnection, outgoing.mayResultFromBrokenConnection(response.response), outgoing.canRepeat()
            {
                outgoing.request.needsNewConnection = true
            } else if let next = response.response.redirection(
                ofGet: outgoing.request.method == "GET", from: initialOrigin, or: trustedOrigins), outgoing.followsRedirect(next.url)
            {
                // After a redirect to another origin, the request carries no credentials and no configured headers, even if
                // `trustedOrigins` contains that origin.
                if next.origin != target { isTrusted = false }
                target = next.origin
                outgoing.request.url = next.url
                outgoing.secrets += EndpointRequest.signatures(in: next.url)
                redirects += 1
            } else {
                return response
            }
        }
        throw TransferError(
            outgoing.redirectLoopClass, .notThisProtocol,
            "The server \(initialOrigin) redirects more than \(Self.maximumRedirects) times; check the address.")
    }

    private func sendOnce(_ outgoing: EndpointRequest, to target: Origin, isTrusted: Bool) async throws -> EndpointResponse {
        var request = outgoing.request
        let fields = isTrusted ? try await credentials.headers() : []
        // The values that receipts, errors and logs must not repeat: the credentials, and the secrets in headers that the hook adds or changes.
        var secrets = fields.map(\.value)
        if isTrusted {
            for field in Array(configuredHeaders) + fields { request.headers.append(field.name, field.value) }
        } else {
            request.connection.clientCertificate = nil
        }
        if request.headers["User-Agent"] == nil { request.headers["User-Agent"] = "TransferKit" }
        if isTrusted, let hook = resources.hook {
            let before = Array(request.headers)
            request.headers = try await headers(from: hook, for: request, renewalsBeforeRejection: outgoing.renewalsBeforeRejection)
            secrets += request.headers.filter { !before.contains($0) }.flatMap(\.secrets)
        }
        outgoing.prepare?(&request)
        let start = ContinuousClock.now
        let response =
            if let sink = outgoing.sink {
                try await resources.engine.download(
                    request, into: sink, writingOn: outgoing.threads, pacing: outgoing.pacing, progress: outgoing.progress)
            } else {
                try await resources.engine.perform(request, pacing: outgoing.pacing, progress: outgoing.progress)
            }
        let latency = ContinuousClock.now - start
        // The message omits the path, because the URL of an upload can be secret.
        logger.debug("\(request.method) \(target)", metadata: ["status": "\(response.status)", "latency": "\(latency)"])
        return EndpointResponse(
            response: response, method: request.method, origin: target, latency: latency,
            secrets: secrets + outgoing.secrets, sentCredentials: !secrets.isEmpty,
            withheldCredentials: !isTrusted && (credentials.includeServerCredentials || hasHeaderHook),
            credentialsWereAccepted: resources.accepted.contains(fields, of: endpointAddress, at: target),
            proxyDescription: request.connection.proxy.descriptionForMessages, credentials: fields)
    }

    private func headers(from hook: HeaderHookCaller, for request: HTTPRequest, renewalsBeforeRejection: Int?) async throws -> HTTPHeaders {
        let info = RequestInfo(
            method: request.method, url: request.url, endpoint: location, origin: context?.origin ?? AttemptOrigin(),
            attempt: context?.number ?? 1)
        guard let renewalsBeforeRejection else { return try await hook.headers(for: info, request.headers, at: endpointAddress) }
        return try await hook.headersAfterRejection(for: info, request.headers, at: endpointAddress, since: renewalsBeforeRejection)
    }

    private func connection() async throws -> ConnectionOptions {
        let secrets = try await credentials.connectionSecrets()
        let logger = logger
        return options.connection(
            passphrase: secrets.passphrase, proxyPassword: secrets.proxyPassword, warn: { logger.warning("\($0)") })
    }

    /// Remembers that the server accepted the credentials of a request.
    package func recordAcceptedCredentials(_ response: EndpointResponse) {
        guard !response.withheldCredentials else { return }
        resources.accepted.insert(response.credentials, of: endpointAddress, at: response.origin)
    }

    /// Returns the origin of a URL; the endpoint's origin if there is no URL, or the URL has no origin.
    package func origin(of url: String?) -> Origin { url.flatMap { URL(string: $0) }.flatMap(Origin.init) ?? origin }

    /// Converts an engine's error to a `TransferError` whose message names the origin.
    ///
    /// - Parameters:
    ///   - url: The requested URL; nil for the endpoint's address.
    ///   - isEndpoint: Whether the request went to the endpoint's address. If so, a response that is not HTTP means that the address is
    ///     wrong.
    package func transferError(_ error: CurlEngineError, at url: String?, isEndpoint: Bool) -> TransferError {
        error.transferError(at: origin(of: url), by: options.network, isEndpoint: isEndpoint)
    }
}
