import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

/// Sends requests to an HTTP endpoint, for one attempt or for a check of the endpoint.
struct HTTPEndpointClient {
    let plan: SessionPlan
    /// The URL for this upload only, which may be secret; nil to use the endpoint's address.
    let givenURL: String?
    let client: EndpointClient
    /// The possibly secret values, such as signatures, in the queries of the address and of ``givenURL``.
    private let signatures: [String]

    var address: EndpointAddress { plan.address }
    var options: HTTPOptions { plan.options }
    var upload: EndpointAddress.Upload { plan.upload }
    var origin: Origin { address.origin }

    /// Creates a client for requests outside a session.
    init(_ endpoint: Endpoint, credentials: any CredentialProvider, resources: ClientResources) throws(TransferError) {
        self.init(try SessionPlan(endpoint, for: nil), endpoint, credentials, resources)
    }

    init(_ attempt: FileAttempt, resources: ClientResources) throws(TransferError) {
        let plan = try SessionPlan(attempt.endpoint, attempt.options, for: attempt.direction)
        var url = attempt.options.uploadURL
        if url == nil, attempt.direction == .upload { url = try plan.options.uploadURL(for: attempt.remotePath) }
        self.init(plan, attempt.endpoint, attempt.credentials, resources, RequestContext(attempt), givenURL: url)
    }

    init(_ attempt: ListingAttempt, resources: ClientResources) throws(TransferError) {
        let plan = try SessionPlan(attempt.endpoint, attempt.options, for: .download)
        self.init(plan, attempt.endpoint, attempt.credentials, resources, RequestContext(attempt))
    }

    private init(
        _ plan: SessionPlan, _ endpoint: Endpoint, _ credentials: any CredentialProvider, _ resources: ClientResources,
        _ context: RequestContext? = nil, givenURL: String? = nil
    ) {
        self.plan = plan
        self.givenURL = givenURL
        // A value with a placeholder is not a signature.
        signatures =
            EndpointRequest.signatures(in: endpoint.address).filter { !$0.contains("{") } + EndpointRequest.signatures(in: givenURL ?? "")
        client = EndpointClient(
            endpoint, origin: plan.address.origin, userName: plan.address.userName, options: plan.options.requests,
            sessionHeaders: plan.headers, credentials: credentials, resources: resources, context: context)
    }

    /// Sends one request and returns the final response, regardless of its status; see ``EndpointClient/send(_:)``.
    ///
    /// - Parameters:
    ///   - expectsContinue: Whether to send `Expect: 100-continue`, unless the server has rejected it before.
    ///   - sink: Receives the body of the response.
    ///   - threads: The threads on which the sink writes.
    ///   - prepare: Changes the request before each send; see ``EndpointRequest/prepare``.
    ///   - canRepeat: Returns whether the body can be sent again; see ``EndpointRequest/canRepeat``.
    ///   - followsRedirect: Returns whether to follow a redirect to a trusted URL.
    /// - Throws: A ``TransferError`` if there is no response, or if the request can't be sent; the sink's error; or `CancellationError`.
    func send(
        _ method: String, to url: String, headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none, expectsContinue: Bool = false,
        sink: (any HTTPResponseSink)? = nil, writingOn threads: WorkerThreads? = nil,
        pacing: (@Sendable (Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil,
        prepare: ((inout HTTPRequest) -> Void)? = nil, canRepeat: @escaping () -> Bool = { true },
        followsRedirect: @escaping (String) -> Bool = { _ in true }
    ) async throws -> EndpointResponse {
        var request = EndpointRequest(
            HTTPRequest(method: method, url: url, headers: headers, body: body, expectsContinue: expectsContinue), secrets: signatures,
            sink: sink, writingOn: threads, pacing: pacing, progress: progress)
        request.request.maximumResponseBody = options.responseLimit
        request.prepare = prepare
        request.canRepeat = canRepeat
        request.isIdempotent = ["PUT", "PROPFIND"].contains(method)
        request.followsRedirect = followsRedirect
        do {
            let endpointResponse = try await client.send(&request)
            if (200..<300).contains(endpointResponse.status) { client.recordAcceptedCredentials(endpointResponse) }
            return endpointResponse
        } catch let error as CurlEngineError {
            throw client.transferError(error, at: request.request.url, isEndpoint: true)
        }
    }

    /// Removes the conditional headers (RFC 9110, section 13.1). The account or the session sets these headers for the transfer of the
    /// file. They must not affect other requests.
    static func removeConditions(_ request: inout HTTPRequest) {
        for name in ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"] { request.headers[name] = nil }
    }

    func source(_ attempt: FileAttempt) -> DownloadSource {
        let url = address.download(TransferNames(attempt))
        let canBeFolder = (try? plan.checkListing()) != nil
        return DownloadSource(attempt, at: url, of: client) { headers, sink, threads, pacing in
            let endpointResponse = try await send(
                "GET", to: url, headers: headers, sink: sink, writingOn: threads, pacing: pacing,
                followsRedirect: { !canBeFolder || !Self.addsSlash($0, to: url) })
            let isFolder = canBeFolder && endpointResponse.response.location.map { Self.addsSlash($0.absoluteString, to: url) } ?? false
            return (
                endpointResponse.response,
                isFolder
                    ? endpointResponse.folderFailure(of: attempt.remotePath) : endpointResponse.downloadFailure(of: attempt.remotePath)
            )
        }
    }

    /// Returns whether a redirect only adds a slash to the path of a URL. WebDAV servers redirect the URL of a folder in this way.
    private static func addsSlash(_ target: String, to url: String) -> Bool {
        func path(_ url: String) -> String? { URL(string: url)?.path(percentEncoded: false) }
        guard let target = path(target), let source = path(url) else { return false }
        return target == source + "/"
    }

    /// Checks whether the server is available.
    ///
    /// - Throws: A ``TransferError`` if there is no response, or if the server rejects the credentials or the client certificate, requires TLS, or
    ///   reports a server error; or `CancellationError`.
    func report() async throws -> EndpointReport {
        // A WebDAV server describes itself only in a response to OPTIONS (RFC 4918, section 10.1).
        var endpointResponse = try await send(options.webDAV ? "OPTIONS" : "HEAD", to: address.folder)
        // A response to HEAD has no body that could show whether the server rejected the client's certificate.
        if endpointResponse.status == 400 { endpointResponse = try await send("OPTIONS", to: address.folder) }
        if endpointResponse.response.refusesClientCertificate || endpointResponse.response.requiresTLS {
            throw endpointResponse.failure("request")
        }
        // The query of the address may contain credentials for files, but this request omits the query. If the address has a query, a 401 to a
        // request without other credentials is therefore not an error.
        let isRefused = endpointResponse.status == 401 && (endpointResponse.sentCredentials || !address.hasQuery)
        if isRefused || endpointResponse.status >= 500 && endpointResponse.status != 501 { throw endpointResponse.failure("request") }
        let headers = endpointResponse.response.headers
        let features = ["Accept-Ranges", "Allow", "DAV"].compactMap { name in headers[name].map { "\(name): \($0.prefix(200))" } }
        return EndpointReport(
            version: endpointResponse.response.version == .http2 ? "HTTP/2" : "HTTP/1.1", features: features,
            latency: endpointResponse.latency)
    }
}
