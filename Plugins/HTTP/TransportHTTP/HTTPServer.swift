import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

/// An endpoint of an HTTP server, for the requests of one attempt.
struct HTTPServer {
    let plan: SessionPlan
    /// The URL for this upload only, which may be secret; nil to use the endpoint's address.
    let givenURL: String?
    let client: EndpointClient
    /// The possibly secret values, such as signatures, in the queries of the address and of ``givenURL``.
    private let signatures: [String]

    var address: EndpointAddress { plan.address }
    var options: HTTPOptions { plan.options }
    /// The upload method.
    var upload: EndpointAddress.Upload { plan.upload }
    var origin: Origin { address.origin }

    /// - Parameter attempt: The attempt that the requests belong to; nil for requests outside a session.
    init(
        _ endpoint: Endpoint, credentials: any CredentialProvider, resources: ClientResources, attempt: FileAttempt? = nil
    ) throws(TransferError) {
        plan = try SessionPlan(endpoint, attempt?.options ?? AttemptOptions(), for: attempt?.direction)
        givenURL =
            if let url = attempt?.options.uploadURL {
                url
            } else if let attempt, attempt.direction == .upload {
                try plan.options.uploadURL(for: attempt.remotePath)
            } else {
                nil
            }
        // A value with a placeholder is not a signature.
        signatures =
            EndpointRequest.signatures(in: endpoint.address).filter { !$0.contains("{") } + EndpointRequest.signatures(in: givenURL ?? "")
        client = EndpointClient(
            endpoint, origin: plan.address.origin, userName: plan.address.userName, options: plan.options.requests,
            sessionHeaders: plan.headers, credentials: credentials, resources: resources, attempt: attempt)
    }

    /// Sends one request and returns the final response, whatever its status; see ``EndpointClient/send(_:)``.
    ///
    /// - Parameters:
    ///   - expectsContinue: Whether to send `Expect: 100-continue`, unless the server has rejected it before.
    ///   - sink: Receives the body of the response.
    ///   - threads: The threads on which the sink writes.
    ///   - prepare: Changes the request before each time it is sent; see ``EndpointRequest/prepare``.
    /// - Throws: A ``TransferError`` if there is no response, or if the request can't be sent; or `CancellationError`.
    func send(
        _ method: String, to url: String, headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none, expectsContinue: Bool = false,
        sink: (any HTTPResponseSink)? = nil, writingOn threads: WorkerThreads? = nil,
        pacing: (@Sendable (Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil,
        prepare: ((inout HTTPRequest) -> Void)? = nil
    ) async throws -> EndpointResponse {
        var request = EndpointRequest(
            HTTPRequest(method: method, url: url, headers: headers, body: body, expectsContinue: expectsContinue), secrets: signatures,
            sink: sink, writingOn: threads, pacing: pacing, progress: progress)
        request.request.maximumResponseBody = options.responseLimit
        request.prepare = prepare
        do {
            let answer = try await client.send(&request)
            if (200..<300).contains(answer.status) { client.recordAcceptedCredentials(answer) }
            return answer
        } catch let error as CurlEngineError {
            throw client.transferError(error, at: request.request.url, isEndpoint: true)
        }
    }

    /// The file that an attempt downloads.
    func source(_ attempt: FileAttempt) -> DownloadSource {
        let url = address.download(TransferNames(attempt))
        return DownloadSource(attempt, at: url, of: client) { headers, sink, threads, pacing in
            let answer = try await send("GET", to: url, headers: headers, sink: sink, writingOn: threads, pacing: pacing)
            return (answer.response, answer.downloadFailure(of: attempt.remotePath))
        }
    }

    /// Checks whether the server is available.
    func report() async throws -> EndpointReport {
        var answer = try await send("HEAD", to: address.folder)
        // A response to HEAD has no body that could show whether the server rejected the client's certificate.
        if answer.status == 400 { answer = try await send("OPTIONS", to: address.folder) }
        if answer.response.refusesClientCertificate || answer.response.requiresTLS { throw answer.failure("request") }
        // The query of the address may contain credentials for files, but this request omits the query. For an address with a query, a 401 is
        // therefore not an error.
        let isRefused = answer.status == 401 && (answer.sentCredentials || !address.hasQuery)
        if isRefused || answer.status >= 500 && answer.status != 501 { throw answer.failure("request") }
        let headers = answer.response.headers
        let features = ["Accept-Ranges", "Allow"].compactMap { name in headers[name].map { "\(name): \($0.prefix(200))" } }
        return EndpointReport(
            version: answer.response.version == .http2 ? "HTTP/2" : "HTTP/1.1", features: features, latency: answer.latency)
    }
}
