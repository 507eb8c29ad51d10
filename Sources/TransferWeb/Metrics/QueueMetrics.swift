import CoreMetrics
import TransferCore
import TransferKit

/// The metrics of the queue and of the web server. Their names are stable. Labels have few values; a session's ID is never a label.
actor QueueMetrics {
    /// The name, kind and help text of each metric.
    private static let descriptions = [
        ("transferq_up", "gauge", "Whether a process owns the queue and responds."),
        ("transferq_queue_running", "gauge", "Whether the queue starts sessions."),
        ("transferq_sessions", "gauge", "The sessions in the queue, by state."),
        ("transferq_slots", "gauge", "The maximum number of concurrent sessions."),
        ("transferq_remaining_bytes", "gauge", "The bytes that running and waiting sessions have not transferred yet."),
        ("transferq_rate_bytes_per_second", "gauge", "The recent rate of the running sessions, by account and direction."),
        ("transferq_account_blocked", "gauge", "Whether an account is blocked until the user acts."),
        ("transferq_account_unavailable", "gauge", "Whether all endpoints of an account failed too often or asked to back off."),
        ("transferq_sessions_ended_total", "counter", "The ended sessions since the server started, by account, direction and result."),
        ("transferq_sessions_ended_bytes_total", "counter", "The bytes of the completed sessions, by account, direction and transport."),
        ("transferq_session_duration_seconds", "summary", "The duration of the runs of completed sessions, by account and direction."),
        ("transferq_failures_total", "counter", "The failures of sessions, items and attempts, by class and kind."),
        ("transferq_events_total", "counter", "The events of the queue, by name."),
        ("transferq_web_requests_total", "counter", "The requests to the server, by status."),
        ("transferq_web_event_clients", "gauge", "The clients that receive events."),
    ]

    private let queue: any ControllableQueue
    private let registry: PrometheusMetrics
    /// The pairs of an account and a direction for which a rate was reported before. The rate of a pair is 0 while it has no running session.
    private var rated: Set<[String]> = []
    private var accounts: Set<String> = []
    /// The gauges, by their names and the values of their labels.
    private var gauges: [[String]: (name: String, labels: [(String, String)])] = [:]
    /// The completed and failed sessions whose accounts have not been read yet, at most 10,000; further sessions are not counted. Many sessions can
    /// end in a short time, for example while the server reads missed events. The queue limits the number of connections, so the accounts are
    /// read one at a time.
    private let ends: AsyncStream<(id: SessionID, result: String)>.Continuation

    init(_ queue: any ControllableQueue, _ registry: PrometheusMetrics) {
        self.queue = queue
        self.registry = registry
        let (stream, ends) = AsyncStream.makeStream(of: (id: SessionID, result: String).self, bufferingPolicy: .bufferingOldest(10_000))
        self.ends = ends
        Task { [weak self] in
            for await end in stream { await self?.countEnd(of: end.id, end.result) }
        }
        for (name, kind, help) in Self.descriptions { registry.describe(name, as: kind, help) }
    }

    deinit { ends.finish() }

    private func set(_ name: String, _ value: Double, _ labels: [(String, String)] = []) {
        gauges[[name] + labels.map(\.1)] = (name, labels)
        Meter(label: name, dimensions: labels, factory: registry).set(value)
    }

    private nonisolated func count(_ name: String, _ labels: [(String, String)], by amount: Int64 = 1) {
        Counter(label: name, dimensions: labels, factory: registry).increment(by: amount)
    }

    nonisolated func countResponse(_ status: Int) { count("transferq_web_requests_total", [("status", "\(status)")]) }

    nonisolated func count(_ event: QueueEvent) {
        count("transferq_events_total", [("event", event.kind.name)])
        let failure: (TransferError, String)? =
            switch event.kind {
            case .failed(_, let error): (error, "session")
            case .itemFailed(_, _, let error): (error, "item")
            case .attemptFailed(_, let error, _): (error, "attempt")
            default: nil
            }
        if let (error, kind) = failure { count("transferq_failures_total", [("class", error.failureClass.rawValue), ("kind", kind)]) }
        let result: String
        switch event.kind {
        case .completed: result = "completed"
        case .failed: result = "failed"
        default: return
        }
        guard let id = event.session else { return }
        // The event does not contain the account, so a task reads the account from the queue. Clients get the event without waiting for this read.
        ends.yield((id, result))
    }

    private func countEnd(of id: SessionID, _ result: String) async {
        guard let session = try? await queue.status(of: id) else { return }
        let labels = [("account", session.account), ("direction", session.direction.rawValue)]
        count("transferq_sessions_ended_total", labels + [("result", result)])
        guard result == "completed" else { return }
        count(
            "transferq_sessions_ended_bytes_total", labels + [("transport", session.transport?.rawValue ?? "none")],
            by: session.statistics.bytesDone)
        CoreMetrics.Timer(label: "transferq_session_duration_seconds", dimensions: labels, factory: registry)
            .recordSeconds(session.statistics.secondsElapsed)
    }

    /// Reads the current state, and returns the text of all metrics.
    ///
    /// - Parameter eventClients: The number of clients that receive events.
    func text(eventClients: Int) async -> String {
        do {
            try await read()
            set("transferq_up", 1)
        } catch {
            // Old values would look like the current state.
            for gauge in gauges.values { Meter(label: gauge.name, dimensions: gauge.labels, factory: registry).destroy() }
            gauges = [:]
            set("transferq_up", 0)
        }
        set("transferq_web_event_clients", Double(eventClients))
        return registry.text
    }

    private func read() async throws {
        let (status, statistics) = (try await queue.status(), try await queue.statistics())
        let states: [(SessionState, Int)] = [
            (.running, status.running), (.waiting, status.waiting), (.paused, status.paused), (.held, status.held), (.draft, status.drafts),
            (.cancelled, status.cancelled), (.completed, status.completed), (.failed, status.failed),
        ]
        for (state, count) in states { set("transferq_sessions", Double(count), [("state", state.rawValue)]) }
        set("transferq_queue_running", status.mode == .running ? 1 : 0)
        if let limit = status.sessionLimit { set("transferq_slots", Double(limit)) }
        set("transferq_remaining_bytes", Double(statistics.bytesRemaining))
        var rates: [[String]: Double] = [:]
        for session in try await queue.sessions(in: .state(.running)) {
            rates[[session.account, session.direction.rawValue], default: 0] += session.statistics.rate ?? 0
        }
        rated.formUnion(rates.keys)
        for key in rated { set("transferq_rate_bytes_per_second", rates[key] ?? 0, [("account", key[0]), ("direction", key[1])]) }
        let current = try await queue.accounts()
        for account in current {
            set("transferq_account_blocked", account.blockingError == nil ? 0 : 1, [("account", account.account.name)])
            set("transferq_account_unavailable", account.isUnavailable ? 1 : 0, [("account", account.account.name)])
        }
        let names = Set(current.map(\.account.name))
        for name in accounts.subtracting(names) {
            for label in ["transferq_account_blocked", "transferq_account_unavailable"] {
                Meter(label: label, dimensions: [("account", name)], factory: registry).destroy()
            }
        }
        accounts = names
    }
}
