import CoreMetrics
import Tracing

/// Records metrics and a span for one request. The app chooses the backends of swift-metrics and swift-distributed-tracing that receive them.
struct RequestMeter {
    private let start = ContinuousClock.now
    /// The method as a label of the metrics, or `other` for an unusual method. An app can choose any method, but a label must have few values.
    let method: String

    init(_ method: String) {
        self.method =
            ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "MKCOL", "MOVE"].contains(method) ? method : "other"
    }

    /// Describes a request in its span. Except for the origin, the names of the attributes follow OpenTelemetry's conventions for HTTP. The
    /// attributes omit the URL, which may contain a secret.
    func describe(_ request: HTTPRequest, in span: any Span) {
        guard span.isRecording else { return }
        span.updateAttributes { attributes in
            attributes["http.request.method"] = method
            attributes["transferkit.origin"] = request.originForMessages
        }
    }

    func end(status: Int, in span: any Span) {
        end("\(min(max(status / 100, 0), 9))xx")
        guard span.isRecording else { return }
        span.updateAttributes { $0["http.response.status_code"] = status }
    }

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
