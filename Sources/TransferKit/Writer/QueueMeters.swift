import CoreMetrics
import TransferCore

/// The metrics of a queue, for the backend that the app has chosen for swift-metrics. Each label has only a few values, and no label contains a
/// session's ID.
struct QueueMeters: Sendable {
    /// The last recorded number of sessions in each state, so that only changes are recorded.
    private var sessions: [SessionState: Int] = [:]
    /// The labels of the sessions that have run in this process and have not ended.
    private var runs: [SessionID: RunLabels] = [:]

    /// Whether the app has chosen a backend. Without one, nothing is recorded.
    private var isEnabled: Bool { !(MetricsSystem.factory is NOOPMetricsHandler) }

    mutating func begin(_ id: SessionID, _ labels: RunLabels) {
        if isEnabled { runs[id] = labels }
    }

    func recordRun(of account: String?, _ labels: RunLabels, _ duration: Duration) {
        guard isEnabled else { return }
        CoreMetrics.Timer(label: "transferkit_run", dimensions: [("account", account ?? Self.unknown)] + labels.dimensions)
            .recordNanoseconds(duration.nanoseconds)
    }

    private static let unknown = "unknown"

    /// Records the changes of a durable transaction.
    mutating func record(_ events: [QueueEvent], _ scheduler: Scheduler) {
        guard isEnabled else { return }
        for event in events {
            count(event.kind, scheduler)
            switch event.kind {
            case .completed(let id), .failed(let id, _): runs[id] = nil
            case .cancelled(let ids), .removed(let ids, _): for id in ids { runs[id] = nil }
            default: break
            }
        }
        for state in SessionState.allCases where sessions[state] != scheduler.sessionIndex.counts[state, default: 0] {
            sessions[state] = scheduler.sessionIndex.counts[state, default: 0]
            Meter(label: "transferkit_sessions", dimensions: [("state", state.rawValue)]).set(sessions[state, default: 0])
        }
    }

    private func count(_ event: QueueEvent.Kind, _ scheduler: Scheduler) {
        func account(_ id: SessionID) -> (String, String) {
            let entry = scheduler.sessionIndex.key(of: id).flatMap { scheduler.sessionIndex[$0] }
            // The queue's retention can remove a session in the transaction that completes it.
            return ("account", entry.flatMap { scheduler.accounts[$0.account]?.account.name } ?? Self.unknown)
        }
        func count(_ name: String, _ id: SessionID, _ labels: [(String, String)], by amount: Int64 = 1) {
            Counter(label: "transferkit_\(name)", dimensions: [account(id)] + (runs[id]?.dimensions ?? RunLabels.unknown) + labels)
                .increment(by: amount)
        }
        func fail(_ kind: String, _ id: SessionID, _ error: TransferError) {
            count("failures", id, [("class", error.failureClass.rawValue), ("kind", kind)])
        }
        switch event {
        case .completed(let id): count("sessions_ended", id, [("result", "completed")])
        case .failed(let id, let error):
            count("sessions_ended", id, [("result", "failed")])
            fail("session", id, error)
        case .cancelled(let ids): for id in ids { count("sessions_ended", id, [("result", "cancelled")]) }
        case .itemCompleted(let id, _, let receipt):
            count("items_ended", id, [("result", "completed")])
            count("item_bytes", id, [], by: max(0, receipt.bytes))
        case .itemFailed(let id, _, let error):
            count("items_ended", id, [("result", "failed")])
            fail("item", id, error)
        case .attemptFailed(let id, let error, _): fail("attempt", id, error)
        case .accountBlocked(let name, _), .accountUnblocked(let name):
            let isBlocked = if case .accountBlocked = event { true } else { false }
            Meter(label: "transferkit_account_blocked", dimensions: [("account", name)]).set(isBlocked ? 1 : 0)
        default: break
        }
    }
}
