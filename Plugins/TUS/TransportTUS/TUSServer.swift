import CurlEngine
import Foundation
import HTTPClient
import Locking
import Logging
import TransferCore
import TransportSupport

/// One endpoint as one attempt talks to it: puts the headers on each request that tus and the endpoint want, and follows the redirects that
/// may be followed.
struct TUSServer {
    private static let maximumRedirects = 5

    let dialect: Dialect
    /// Where uploads are created.
    let address: String
    let origin: Origin
    let settings: EndpointSettings
    let memory: EndpointMemory
    let credentials: EndpointCredentials
    let account: String
    /// Headers that the session wants on each request.
    private let sessionHeaders: HTTPHeaders
    private let attempt: (origin: AttemptOrigin, number: Int)
    private let logger: Logger
    private let engine: CurlEngine
    private let acceptance: Acceptance
    private let hook: HeaderSource?

    /// - Parameter attempt: What the requests are for; nil for those that belong to no session.
    init(
        _ endpoint: Endpoint, credentials: any CredentialProvider, resources: TransportResources, attempt: FileAttempt? = nil
    ) throws(TransferError) {
        let url = try endpoint.validate()
        guard let origin = Origin(url), var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw TransferError(.permanent, .invalidEndpoint, "The endpoint address must begin with https:// or http:// for tus.")
        }
        self.credentials = EndpointCredentials(
            references: endpoint.credentials, userName: components.user, origin: origin, provider: credentials)
        try ReservedHeaders.tus.check(endpoint.credentials)
        components.user = nil
        address = components.string ?? endpoint.address
        self.origin = origin
        settings = try EndpointSettings(endpoint.settings)
        account = endpoint.address
        sessionHeaders = try Self.sessionHeaders(attempt?.options.headers ?? [:])
        self.attempt = (attempt?.origin ?? AttemptOrigin(), attempt?.number ?? 1)
        logger = attempt?.logger ?? Logger(label: "TransferKit.tus")
        if let warning = self.credentials.cleartextWarning, resources.warned.isFirst(warning) { logger.warning("\(warning)") }
        hook = resources.hook
        engine = resources.engine
        acceptance = resources.acceptance
        memory = resources.memory
        dialect = resources.dialect
    }

    /// The headers that a session wants on each request.
    ///
    /// - Throws: A ``TransferError`` that names one which can't be sent.
    static func sessionHeaders(_ values: [String: String]) throws(TransferError) -> HTTPHeaders {
        var headers = HTTPHeaders()
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            try ReservedHeaders.tus.check(name, value, in: .session)
            headers.append(name, value)
        }
        return headers
    }

    /// Sends one request and gives back whatever the server answers, after the redirects that keep the method and stay where the endpoint's
    /// settings allow (RFC 9110, section 15.4).
    ///
    /// Where the app has a header hook, a request that is rejected for its credentials is sent once more; all but `PATCH`, before which the
    /// server must be asked for its offset. A request without content is also sent once more, on a new connection, after a 400 that is not a tus
    /// server's: the connection may have broken within the request. Content has other ways to recover from a 400.
    ///
    /// - Parameters:
    ///   - expectsContinue: Whether the server is asked before the body is sent, if it is known to put up with that.
    ///   - trailer: Goes on with this checksum over the body while that is sent, and sends it behind (extension *checksum-trailer*).
    ///   - sink: Takes the body of the answer.
    ///   - threads: Those of the disk that the sink writes to, if it does.
    ///   - rejectedSince: For a request that is sent once more after it was rejected: ``renewals`` from before it was sent first.
    /// - Throws: A ``CurlEngineError`` when there is no answer, a ``TransferError``, or `CancellationError`.
    func send(
        _ kind: TUSRequest, to address: String, headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none, expectsContinue: Bool = false,
        trailer: ContentHash? = nil, sink: (any HTTPResponseSink)? = nil, writingOn threads: WorkerThreads? = nil,
        rejectedSince: Int? = nil,
        pacing: (@Sendable (Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> TUSAnswer {
        let asks = expectsContinue && !memory.habits(of: self.address).refusesExpectation
        var request = HTTPRequest(
            method: kind.rawValue, url: address, headers: headers, body: body, expectsContinue: asks, connection: try await connection())
        request.headers["User-Agent"] = "TransferKit"
        if kind != .options { request.headers[dialect.versionHeader] = dialect.version }
        if kind == .patch, overridesMethod {
            request.method = TUSRequest.create.rawValue
            request.headers["X-HTTP-Method-Override"] = kind.rawValue
        }
        if trailer != nil { request.headers["Trailer"] = dialect.checksumHeader }
        var flight = Flight(
            kind: kind, request: request, trailer: trailer, sink: sink, threads: threads, rejectedSince: rejectedSince, pacing: pacing,
            progress: progress)
        var redirects = 0
        while redirects <= Self.maximumRedirects {
            let renewals = renewals
            let answer: TUSAnswer
            do {
                answer = try await send(flight)
                // After content that was sent because the server's word did not come in time.
                if asks, answer.status == 417 { memory.learn(of: self.address) { $0.refusesExpectation = true } }
            } catch let error as CurlEngineError where error.kind == .expectationRefused {
                memory.learn(of: self.address) { $0.refusesExpectation = true }
                throw error
            }
            if answer.status == 401 || answer.status == 403, hasHeaderHook, kind != .patch, flight.rejectedSince == nil,
                !answer.withheldCredentials
            {
                flight.rejectedSince = renewals
            } else if answer.mayBeOfCutRequest, body.length ?? 0 == 0, !flight.request.needsNewConnection {
                flight.request.needsNewConnection = true
            } else if let target = followed(answer) {
                if target.origin != flight.origin { flight.hasLeftItsOrigin = true }
                flight.request.url = target.url
                redirects += 1
            } else {
                return answer
            }
        }
        throw TransferError(
            kind.isCreation ? .unreachable : .protocolViolation, .notThisProtocol,
            "The server \(origin) redirects in circles; check the address.")
    }

    /// One request on its way, perhaps by way of redirects.
    private struct Flight {
        let kind: TUSRequest
        var request: HTTPRequest
        let trailer: ContentHash?
        let sink: (any HTTPResponseSink)?
        let threads: WorkerThreads?
        var rejectedSince: Int?
        /// Whether a redirect led to another origin, whatever that is trusted with otherwise.
        var hasLeftItsOrigin = false
        let pacing: (@Sendable (Int) -> Allowance)?
        let progress: (@Sendable (Int64) -> Void)?

        var origin: Origin? { URL(string: request.url).flatMap(Origin.init) }
    }

    /// Where a request is to be sent again; nil if the answer is no redirect that may be followed.
    private func followed(_ answer: TUSAnswer) -> (url: String, origin: Origin)? {
        answer.response.redirection(ofGet: answer.request == .get, from: origin, or: settings.origins)
    }

    /// Sends one request once.
    private func send(_ flight: Flight) async throws -> TUSAnswer {
        var request = flight.request
        let isTrusted = !flight.hasLeftItsOrigin && flight.origin.map { $0 == origin || settings.origins.contains($0) } ?? false
        let fields = isTrusted ? try await credentials.headers() : []
        // What shows who we are: the credentials, and whatever the hook makes of them.
        var identity = fields
        if isTrusted {
            for field in Array(settings.headers) + Array(sessionHeaders) + fields { request.headers.append(field.name, field.value) }
            if let hook {
                let before = Array(request.headers)
                request.headers = try await headers(from: hook, for: request, rejectedSince: flight.rejectedSince)
                identity += request.headers.filter { !before.contains($0) }
            }
        } else {
            request.connection.clientCertificate = nil
        }
        let start = ContinuousClock.now
        let hash = flight.trailer.map { Locked($0) }
        if let hash, let checksumHeader = dialect.checksumHeader {
            if case .file = request.body {
                request.observeBody = { bytes in hash.withLock { hash in unsafe bytes.withUnsafeBytes { unsafe hash.update($0) } } }
            }
            request.trailers = { [checksumHeader: hash.withLock { $0.header }] }
        }
        let response =
            if let sink = flight.sink {
                try await engine.download(request, into: sink, writingOn: flight.threads, pacing: flight.pacing, progress: flight.progress)
            } else {
                try await engine.perform(request, pacing: flight.pacing, progress: flight.progress)
            }
        var answer = TUSAnswer(flight.kind, response, server: self, secrets: identity.map(\.value), latency: ContinuousClock.now - start)
        let asked = (flight.origin ?? origin).description
        answer.withheldCredentials = !isTrusted && (credentials.areForServer || hasHeaderHook)
        answer.contentHash = hash?.withLock { $0 }
        answer.sentCredentials = !identity.isEmpty
        answer.wasSentAsCreation = flight.kind == .patch && request.method != flight.kind.rawValue
        answer.proxyName = request.connection.proxy.name
        answer.credentialsWereAccepted = acceptance.wereAccepted(fields, of: account, at: asked)
        // OPTIONS is answered by many without a look at the credentials.
        let isAccepted = flight.kind == .get ? (200..<300).contains(answer.status) : answer.isSuccess
        if isAccepted, isTrusted, flight.kind != .options { acceptance.note(fields, of: account, at: asked) }
        return answer
    }

    private func connection() async throws -> ConnectionOptions {
        let secrets = try await credentials.connectionSecrets()
        let logger = logger
        return settings.connection.options(
            passphrase: secrets.passphrase, proxyPassword: secrets.proxyPassword, warn: { logger.warning("\($0)") })
    }

    private func headers(from hook: HeaderSource, for request: HTTPRequest, rejectedSince: Int?) async throws -> HTTPHeaders {
        let info = RequestInfo(method: request.method, url: request.url, origin: attempt.origin, attempt: attempt.number)
        guard let rejectedSince else { return try await hook.headers(for: info, request.headers) }
        return try await hook.headersAfterRejection(for: info, request.headers, account: account, since: rejectedSince)
    }

    var hasHeaderHook: Bool { hook != nil }

    /// How often the app's hook renewed this account's credentials so far.
    var renewals: Int { hook?.renewals(of: account) ?? 0 }

    private var overridesMethod: Bool { settings.overridesMethod || memory.habits(of: address).needsMethodOverride }

    /// Sends `PATCH` under the name of `POST` from now on.
    ///
    /// - Returns: Whether that is a change.
    func beginOverridingMethod() -> Bool {
        guard !overridesMethod else { return false }
        memory.learn(of: address) { $0.needsMethodOverride = true }
        return true
    }
}

/// The requests of the protocol.
enum TUSRequest: String {
    case options = "OPTIONS"
    case create = "POST"
    case head = "HEAD"
    case patch = "PATCH"
    case delete = "DELETE"
    /// Not of the protocol: gives back the content, where the server does that.
    case get = "GET"

    /// Whether it is sent to the endpoint itself, and not to an upload there.
    var isCreation: Bool { self == .create || self == .options }
}

/// What the attempts of one transport share.
struct TransportResources: Sendable {
    let engine = CurlEngine()
    let disks: DiskThreads
    let acceptance = Acceptance()
    let warned = FirstTimes()
    let memory: EndpointMemory
    let hook: HeaderSource?
    let dialect: Dialect
}
