public import CoreMetrics
import Locking

/// Collects metrics, and writes them in the text format of Prometheus.
///
/// ``WebServer`` serves its metrics at `/metrics`. An app can collect the metrics of its other libraries with the same object, by passing
/// it to `MetricsSystem.bootstrap(_:)`.
///
/// In the names of metrics and labels, an underscore replaces each character other than an ASCII letter or digit, and precedes a digit at the
/// start. A counter's name ends with `_total`, and a timer's with `_seconds`.
public final class PrometheusMetrics: MetricsFactory {
    /// The maximum number of metrics. Each combination of labels is a separate metric. Further metrics are not collected, so an app that
    /// creates ever more labels can't use up the memory.
    private static let limit = 10_000

    private struct State: Sendable {
        /// The kind and the help text of each metric, by the name of the metric.
        var families: [String: Family] = [:]
        var values: [Key: Sample] = [:]
    }

    private struct Family: Sendable {
        let kind: String
        var help: String
    }

    /// The name of a metric with its labels.
    fileprivate struct Key: Hashable, Comparable, Sendable {
        let name: String
        let labels: String

        static func < (left: Key, right: Key) -> Bool { (left.name, left.labels) < (right.name, right.labels) }
    }

    /// The value of a metric. For a summary, the sum and the number of the recorded values.
    fileprivate struct Sample: Sendable {
        var value = 0.0
        var count: Int64 = 0
    }

    private let state = Locked(State())

    /// Creates a factory without metrics.
    public init() {}

    func describe(_ label: String, as kind: String, _ help: String) {
        state.withLock { $0.families[Self.name(label)] = Family(kind: kind, help: help) }
    }

    // MARK: MetricsFactory

    /// Creates or finds a counter.
    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        handler(label, "_total", "counter", dimensions)
    }

    /// Creates or finds a counter.
    public func makeFloatingPointCounter(label: String, dimensions: [(String, String)]) -> any FloatingPointCounterHandler {
        handler(label, "_total", "counter", dimensions)
    }

    /// Creates or finds a gauge.
    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { handler(label, "", "gauge", dimensions) }

    /// Creates or finds a gauge or, with `aggregate`, a summary.
    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        handler(label, "", aggregate ? "summary" : "gauge", dimensions)
    }

    /// Creates or finds a summary of seconds.
    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        handler(label, "_seconds", "summary", dimensions)
    }

    /// Removes the counter.
    public func destroyCounter(_ handler: any CounterHandler) { remove(handler) }
    /// Removes the counter.
    public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { remove(handler) }
    /// Removes the gauge.
    public func destroyMeter(_ handler: any MeterHandler) { remove(handler) }
    /// Removes the gauge or summary.
    public func destroyRecorder(_ handler: any RecorderHandler) { remove(handler) }
    /// Removes the summary.
    public func destroyTimer(_ handler: any TimerHandler) { remove(handler) }

    private func handler(_ label: String, _ suffix: String, _ kind: String, _ dimensions: [(String, String)]) -> MetricHandler {
        var name = Self.name(label)
        if !name.hasSuffix(suffix) { name += suffix }
        let labels = dimensions.sorted { $0.0 < $1.0 }.map { "\(Self.name($0.0))=\"\(Self.escaped($0.1))\"" }.joined(separator: ",")
        let key = Key(name: name, labels: labels)
        state.withLock { state in
            guard state.values[key] == nil, state.values.count < Self.limit else { return }
            if state.families[name] == nil { state.families[name] = Family(kind: kind, help: "The metric \(label).") }
            state.values[key] = Sample()
        }
        return MetricHandler(key, isSummary: kind == "summary", in: self)
    }

    private func remove(_ handler: AnyObject) {
        guard let handler = handler as? MetricHandler else { return }
        state.withLock { $0.values[handler.key] = nil }
    }

    /// Changes a value, unless the metric was removed or exceeded the limit.
    fileprivate func update(_ key: Key, _ change: (inout Sample) -> Void) {
        state.withLock { state in
            guard var sample = state.values[key] else { return }
            change(&sample)
            state.values[key] = sample
        }
    }

    // MARK: Text

    /// The text format, version 0.0.4.
    var text: String {
        let (families, values) = state.withLock { ($0.families, $0.values) }
        var text = ""
        var name: String?
        for (key, sample) in values.sorted(by: { $0.key < $1.key }) {
            guard let family = families[key.name] else { continue }
            if key.name != name {
                name = key.name
                text += "# HELP \(key.name) \(family.help)\n# TYPE \(key.name) \(family.kind)\n"
            }
            let labels = key.labels.isEmpty ? "" : "{\(key.labels)}"
            if family.kind == "summary" {
                text += "\(key.name)_sum\(labels) \(sample.value)\n\(key.name)_count\(labels) \(sample.count)\n"
            } else {
                text += "\(key.name)\(labels) \(sample.value)\n"
            }
        }
        return text
    }

    private static func name(_ text: String) -> String {
        let name = String(text.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") ? $0 : "_" })
        return name.first?.isNumber ?? true ? "_" + name : name
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}

private final class MetricHandler: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler, TimerHandler {
    let key: PrometheusMetrics.Key
    private let isSummary: Bool
    private let metrics: PrometheusMetrics

    init(_ key: PrometheusMetrics.Key, isSummary: Bool, in metrics: PrometheusMetrics) {
        self.key = key
        self.isSummary = isSummary
        self.metrics = metrics
    }

    func increment(by amount: Int64) { increment(by: Double(amount)) }

    // A counter never decreases.
    func increment(by amount: Double) { metrics.update(key) { $0.value += max(0, amount) } }

    func decrement(by amount: Double) { metrics.update(key) { $0.value -= amount } }

    func reset() { metrics.update(key) { $0 = PrometheusMetrics.Sample() } }

    func set(_ value: Int64) { set(Double(value)) }

    func set(_ value: Double) { metrics.update(key) { $0.value = value } }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        metrics.update(key) { [isSummary] sample in
            sample.value = isSummary ? sample.value + value : value
            if sample.count < .max { sample.count += 1 }
        }
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
}
