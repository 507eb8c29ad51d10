import Foundation
import Locking
import Logging
import SystemPackage
import TransferKit
import TransferOutput

/// The page, the HTTP interface and the metrics of a server.
struct Site: Sendable {
    let feed: EventFeed
    private let queue: any ControllableQueue
    private let api: APIRouter
    private let pages: PageRouter
    private let rates = RateHistory()
    private let metrics: QueueMetrics
    private let eventClients = Locked(0)
    private let limits: WebLimits

    init(
        _ queue: any ControllableQueue, options: WebServerOptions, folder: FilePath, _ registry: PrometheusMetrics
    ) {
        self.queue = queue
        let metrics = QueueMetrics(queue, registry)
        self.metrics = metrics
        limits = options.limits
        let snapshots = SnapshotCache(age: limits.snapshotAge)
        feed = EventFeed(of: queue, limit: limits.recentEvents) { event in
            guard !event.isProgress else { return }
            metrics.count(event)
            await snapshots.invalidate()
        }
        let stream = EventStream(feed: feed, queue: queue, clients: eventClients, limits: limits)
        api = APIRouter(
            queue: queue, events: stream, rates: rates, snapshots: snapshots,
            diagnostics: DiagnosticProgram(options.program, folder: folder), scanLimit: limits.scannedSessions)
        pages = PageRouter(queue: queue, feed: feed, api: api)
    }

    /// Returns the response to a request. An error becomes a response too. Otherwise, the HTTP library would close the connection without a
    /// response.
    @concurrent
    func response(to request: WebRequest, _ body: BodyReader, _ admission: Admission) async -> WebResponse {
        let response: WebResponse
        do {
            response = try await admittedResponse(to: request, from: try admission.admit(request), body, admission)
        } catch {
            response = Problem(error).response
        }
        metrics.countResponse(response.status)
        return response
    }

    /// Returns the response to a request that passed the checks of ``Admission``.
    ///
    /// - Parameter client: The client that sent the request; nil without a valid token or cookie.
    @concurrent
    private func admittedResponse(
        to request: WebRequest, from client: Admission.Client?, _ body: BodyReader, _ admission: Admission
    ) async throws -> WebResponse {
        if let asset = try PageAssets.response(to: request) { return asset }
        var request = request
        if request.path == "/login" { return try await pages.login(request, body, admission) }
        guard let client else {
            if request.path == "/", request.method == "GET" { return PageRouter.signIn(401) }
            var problem = Problem(
                401, "unauthorized", "The request has no valid token. Send the token in \(AccessTokens.fileName) as a bearer token.")
            problem.headers = [(name: "WWW-Authenticate", value: "Bearer realm=\"transferq\"")]
            throw problem
        }
        if request.path == "/metrics", request.method == "GET" || request.method == "HEAD" {
            return WebResponse(
                200, "text/plain; version=0.0.4; charset=utf-8", await metrics.text(eventClients: eventClients.withLock { $0 }))
        }
        guard ["api", "v1"] == request.components.prefix(2) else { return try await pages.response(to: request, body, client, admission) }
        if request.method != "GET", request.method != "HEAD" {
            try admission.checkChange(by: client)
            let isJSON = request.mediaType == "application/json"
            // A page of another site can send forms, but not JSON, without the server's consent (Fetch Standard, "CORS-safelisted request-header").
            guard isJSON || !client.usesCookie && !["POST", "PUT"].contains(request.method) else {
                throw Problem(415, "unsupportedMediaType", "The request must have the type application/json.")
            }
            request.body = try await body.read()
        }
        return try await api.response(to: request, Array(request.components.dropFirst(2)))
    }

    func sampleRates() async {
        while !Task.isCancelled {
            // While the queue has no owner, there are no rates.
            if let sessions = try? await queue.sessions(in: .state(.running)) {
                await rates.append(RateHistory.Sample(time: Date(), accounts: RateHistory.rates(of: sessions)))
            }
            try? await Task.sleep(for: RateHistory.interval)
        }
    }

    /// Wakes the event streams at a regular interval, so that each one sends a comment. Returns when the task is cancelled.
    func sendHeartbeats() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: limits.heartbeat)
            await feed.wake()
        }
    }
}
