import CoreMetrics

/// The metrics of one request, for the backend that the app has chosen for swift-metrics.
struct RequestMeter {
    private let start = ContinuousClock.now
    private let method: String

    init(_ method: String) {
        // An app can choose the method, but the number of labels must stay small.
        self.method =
            ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "MKCOL", "MOVE"].contains(method) ? method : "other"
    }

    /// Records the end of the request.
    func end(status: Int) { end("\(min(max(status / 100, 0), 9))xx") }

    /// Records the end of a request without a response.
    func end(_ error: any Error) {
        end((error as? CurlEngineError)?.kind.rawValue ?? (error is CancellationError ? "cancelled" : "failed"))
    }

    private func end(_ result: String) {
        guard !(MetricsSystem.factory is NOOPMetricsHandler) else { return }
        let labels = [("method", method), ("result", result)]
        Counter(label: "transferkit_http_requests", dimensions: labels).increment()
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        CoreMetrics.Timer(label: "transferkit_http_request", dimensions: [("method", method)])
            .recordSeconds(Double(seconds) + Double(attoseconds) * 1e-18)
    }
}
