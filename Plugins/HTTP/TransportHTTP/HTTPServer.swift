import CurlEngine
import Foundation
import HTTPClient
import Logging
import TransferCore
import TransportSupport

/// One endpoint as one attempt talks to it: puts the headers on each request that the endpoint wants, and follows the redirects that may be
/// followed.
struct HTTPServer {
    private static let maximumRedirects = 5

    let plan: SessionPlan
    /// Where the file goes that is uploaded, if that was given for it alone. A capability.
    let givenURL: String?
    private let credentials: EndpointCredentials
    private let resources: TransportResources
    private let logger: Logger
    /// What the endpoint is called where credentials are renewed once for all who have them.
    private let account: String
    private let attempt: (origin: AttemptOrigin, number: Int)
    /// What may be a secret in the URLs that were given.
    private let signatures: [String]

    var address: EndpointAddress { plan.address }
    var settings: HTTPSettings { plan.settings }
    /// How files are uploaded.
    var upload: EndpointAddress.Upload { plan.upload }
    var origin: Origin { address.origin }

    /// - Parameter attempt: What the requests are for; nil for those that belong to no session.
    init(
        _ endpoint: Endpoint, credentials: any CredentialProvider, resources: TransportResources, attempt: FileAttempt? = nil
    ) throws(TransferError) {
        plan = try SessionPlan(endpoint, attempt?.options ?? AttemptOptions(), for: attempt?.direction)
        givenURL =
            if let url = attempt?.options.uploadURL {
                url
            } else if let attempt, attempt.direction == .upload {
                try plan.settings.uploadURL(for: attempt.remotePath)
            } else {
                nil
            }
        account = endpoint.address
        self.attempt = (attempt?.origin ?? AttemptOrigin(), attempt?.number ?? 1)
        self.credentials = EndpointCredentials(
            references: endpoint.credentials, userName: plan.address.userName, origin: plan.address.origin, provider: credentials)
        self.resources = resources
        // Where a name is put in, there is no signature.
        signatures = Self.signatures(in: endpoint.address).filter { !$0.contains("{") } + Self.signatures(in: givenURL ?? "")
        logger = attempt?.logger ?? Logger(label: "TransferKit.http")
        if let warning = self.credentials.cleartextWarning, resources.warned.isFirst(warning) { logger.warning("\(warning)") }
    }

    var habits: ServerHabits { resources.habits }

    /// Sends one request and gives back whatever the server answers, after the redirects that keep the method and stay where the endpoint's
    /// settings allow (RFC 9110, section 15.4).
    ///
    /// A request that is answered with 400 is sent once more, on a new connection: its own may have broken within the request.
    ///
    /// - Parameters:
    ///   - expectsContinue: Whether the server is asked before the body is sent, if it is known to put up with that.
    ///   - sink: Takes the body of the answer.
    ///   - threads: Those of the disk that the sink writes to, if it does.
    /// - Throws: A ``TransferError``, also when there is no answer; or `CancellationError`.
    func send(
        _ method: String, to url: String, headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none, expectsContinue: Bool = false,
        sink: (any HTTPResponseSink)? = nil, writingOn threads: WorkerThreads? = nil,
        pacing: (@Sendable (Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> HTTPAnswer {
        guard let asked = URL(string: url).flatMap(Origin.init) else {
            throw TransferError(.permanent, .invalidEndpoint, "The URL for this file must be one of https or http; check it.")
        }
        let request = HTTPRequest(
            method: method, url: url, headers: headers, body: body,
            expectsContinue: expectsContinue && !habits.refusesExpectation(asked.description), connection: try await connection())
        var isTrusted = asked == origin || settings.origins.contains(asked)
        var flight = Flight(request: request, signatures: signatures, sink: sink, threads: threads, pacing: pacing, progress: progress)
        var target = asked
        var redirects = 0
        while redirects <= Self.maximumRedirects {
            let renewals = resources.hook?.renewals(of: account)
            let answer: HTTPAnswer
            do {
                answer = try await send(flight, asked: target, isTrusted: isTrusted)
            } catch let error as CurlEngineError {
                if error.kind == .expectationRefused { habits.noteRefusedExpectation(target.description) }
                throw error.transferError(at: target, by: settings.connection, isEndpoint: true)
            }
            if flight.request.expectsContinue, answer.status == 417 { habits.noteRefusedExpectation(target.description) }
            if answer.status == 401 || answer.status == 403, isTrusted, let renewals, flight.rejectedSince == nil {
                flight.rejectedSince = renewals
                continue
            }
            if answer.response.mayBeOfCutRequest, !flight.request.needsNewConnection {
                flight.request.needsNewConnection = true
                continue
            }
            guard let next = answer.response.redirection(ofGet: method == "GET", from: asked, or: settings.origins) else { return answer }
            // Whatever that is trusted with otherwise.
            if next.origin != target { isTrusted = false }
            flight.signatures += Self.signatures(in: next.url)
            target = next.origin
            flight.request.url = next.url
            redirects += 1
        }
        throw TransferError(
            .unreachable, .notThisProtocol, "The server \(asked) redirects in circles; check the address.")
    }

    /// One request on its way, perhaps by way of redirects.
    private struct Flight {
        var request: HTTPRequest
        var signatures: [String]
        /// For a request that is sent once more after its credentials were rejected: how often they were renewed before it was sent first.
        var rejectedSince: Int?
        let sink: (any HTTPResponseSink)?
        let threads: WorkerThreads?
        let pacing: (@Sendable (Int) -> Allowance)?
        let progress: (@Sendable (Int64) -> Void)?
    }

    /// Sends one request once.
    private func send(_ flight: Flight, asked: Origin, isTrusted: Bool) async throws -> HTTPAnswer {
        var request = flight.request
        // Where credentials do not go, configured headers do not go either: they may be secrets, too.
        let fields = isTrusted ? try await credentials.headers() : []
        let configured = isTrusted ? Array(settings.headers) + Array(plan.headers) : []
        for field in configured + fields { request.headers.append(field.name, field.value) }
        if request.headers["User-Agent"] == nil { request.headers["User-Agent"] = "TransferKit" }
        // What shows who we are: the credentials, and whatever the hook makes of them.
        var identity = fields
        if isTrusted, let hook = resources.hook {
            let before = Array(request.headers)
            request.headers = try await headers(from: hook, for: request, rejectedSince: flight.rejectedSince)
            identity += request.headers.filter { !before.contains($0) }
        }
        if !isTrusted { request.connection.clientCertificate = nil }
        let start = ContinuousClock.now
        let response =
            if let sink = flight.sink {
                try await resources.engine.download(
                    request, into: sink, writingOn: flight.threads, pacing: flight.pacing, progress: flight.progress)
            } else {
                try await resources.engine.perform(request, pacing: flight.pacing, progress: flight.progress)
            }
        let answer = HTTPAnswer(
            method: request.method, response: response, origin: asked, latency: ContinuousClock.now - start,
            secrets: identity.map(\.value) + flight.signatures, sentCredentials: !identity.isEmpty,
            credentialsWereAccepted: resources.acceptance.wereAccepted(fields, of: account, at: asked.description),
            proxyName: request.connection.proxy.name)
        if (200..<300).contains(response.status) { resources.acceptance.note(fields, of: account, at: asked.description) }
        return answer
    }

    private func headers(from hook: HeaderSource, for request: HTTPRequest, rejectedSince: Int?) async throws -> HTTPHeaders {
        let info = RequestInfo(method: request.method, url: request.url, origin: attempt.origin, attempt: attempt.number)
        guard let rejectedSince else { return try await hook.headers(for: info, request.headers) }
        return try await hook.headersAfterRejection(for: info, request.headers, account: account, since: rejectedSince)
    }

    /// What may be a secret in a URL: the values of its query, unless they are as short as a flag or a number.
    private static func signatures(in url: String) -> [String] {
        url.split(separator: "?", maxSplits: 1).dropFirst().flatMap { $0.split(separator: "&") }.flatMap { field in
            let value = field.split(separator: "=", maxSplits: 1).last.map(String.init) ?? ""
            return value.count < 8 ? [] : [value, value.removingPercentEncoding ?? value]
        }
    }

    private func connection() async throws -> ConnectionOptions {
        let secrets = try await credentials.connectionSecrets()
        let logger = logger
        return settings.connection.options(
            passphrase: secrets.passphrase, proxyPassword: secrets.proxyPassword, warn: { logger.warning("\($0)") })
    }

    /// Asks whether the server is there.
    func report() async throws -> EndpointReport {
        var answer = try await send("HEAD", to: address.folder)
        // The answer to HEAD lacks the page that tells whether that is for the client's certificate.
        if answer.status == 400 { answer = try await send("OPTIONS", to: address.folder) }
        if answer.response.refusesClientCertificate || answer.response.wantsTLS { throw answer.failure("request") }
        // What stands for credentials in the query of the address is for files, and was not sent along.
        let isRefused = answer.status == 401 && (answer.sentCredentials || !address.hasQuery)
        if isRefused || answer.status >= 500 && answer.status != 501 { throw answer.failure("request") }
        let headers = answer.response.headers
        let features = ["Accept-Ranges", "Allow"].compactMap { name in headers[name].map { "\(name): \($0.prefix(200))" } }
        return EndpointReport(
            version: answer.response.version == .http2 ? "HTTP/2" : "HTTP/1.1", features: features, latency: answer.latency)
    }
}
