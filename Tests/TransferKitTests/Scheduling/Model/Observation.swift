import TransferKit

/// The visible state of a queue after a step.
struct Observation: Equatable {
    struct Session: Equatable {
        var id: SessionID
        /// The state that the session's status reports.
        var state: SessionState
        /// The state after the run has ended, if the run is stopping; otherwise equal to ``state``.
        var target: SessionState
        var isEnding: Bool
        var holdsSlot: Bool
        var hasRun: Bool
        var why: WaitReason?
    }

    var mode: String
    var isIdle: Bool
    var orderRevision: UInt64
    /// The sessions in the order of the queue, followed by the drafts in the order in which they were saved.
    var sessions: [Session]
    /// The number of runs in progress for each account, including the runs of removed sessions.
    var runs: [String: Int]

    /// Returns the first difference between two observations, as text.
    func difference(from other: Observation) -> String? {
        if mode != other.mode { return "mode \(mode), expected \(other.mode)" }
        let (ids, otherIDs) = (sessions.map(\.id.testName), other.sessions.map(\.id.testName))
        if ids != otherIDs { return "order \(ids), expected \(otherIDs)" }
        for (session, expected) in zip(sessions, other.sessions) where session != expected {
            if session.with(why: nil) != expected.with(why: nil) { return "\(session.line), expected \(expected.line)" }
            if !session.isSameReason(expected.why) {
                return "why \(session.id.testName) is \(session.whyLine), expected \(expected.whyLine)"
            }
        }
        if runs != other.runs { return "runs \(runs), expected \(other.runs)" }
        if orderRevision != other.orderRevision { return "order revision \(orderRevision), expected \(other.orderRevision)" }
        if isIdle != other.isIdle { return "idle \(isIdle), expected \(other.isIdle)" }
        return nil
    }

    /// The states of ``sessions``, for example `A=running B=waiting`.
    var line: String { sessions.map(\.line).joined(separator: " ") }
}

extension Observation.Session {
    var line: String {
        var text = "\(id.testName)=\(isEnding ? "ending(\(target))" : "\(state)")"
        if state == .paused, !holdsSlot { text += "(displaced)" }
        return text
    }

    func with(why: WaitReason?) -> Self {
        var session = self
        session.why = why
        return session
    }

    /// Returns whether both reasons are the same case with equal values. Ignores errors, and the times until which endpoints are
    /// unavailable, because other tests check these values.
    func isSameReason(_ expected: WaitReason?) -> Bool {
        switch (why, expected) {
        case (.accountBlocked, .accountBlocked), (.endpointsUnavailable, .endpointsUnavailable), (.noSpace, .noSpace): true
        default: why == expected
        }
    }

    var whyLine: String {
        switch why {
        case nil: "nothing"
        case .displaced(let id): "displaced by \(id.testName)"
        case .after(let id, let state): "after \(id.testName), \(state)"
        case .strictOrder(let id): "strictly after \(id.testName)"
        case .order(let id): "after \(id.testName)"
        case .slotHeld(let id): "slot held by \(id.testName)"
        case .some(let why): why.description
        }
    }
}

/// The result of a step.
struct Outcome: Equatable {
    var result: InputResult?
    var code: QueueError.Code?
    var started: [SessionID] = []
    var stopRequested: [SessionID] = []

    func difference(from other: Outcome) -> String? {
        if code != other.code { return "result \(description), expected \(other.description)" }
        if result != other.result { return "result \(description), expected \(other.description)" }
        if started != other.started { return "started \(started.map(\.testName)), expected \(other.started.map(\.testName))" }
        if stopRequested.map(\.testName).sorted() != other.stopRequested.map(\.testName).sorted() {
            return "requested stops of \(stopRequested.map(\.testName)), expected \(other.stopRequested.map(\.testName))"
        }
        return nil
    }

    private var description: String {
        code?.description ?? "\(result?.sessions.map(\.testName) ?? []), held \(result?.held.map(\.testName) ?? [])"
    }
}

extension WaitReason {
    var kind: String {
        switch self {
        case .queueNotRunning: "queueNotRunning"
        case .yielded: "yielded"
        case .displaced: "displaced"
        case .retry: "retry"
        case .notBefore: "notBefore"
        case .after: "after"
        case .accountBlocked: "accountBlocked"
        case .endpointsUnavailable: "endpointsUnavailable"
        case .transportMissing: "transportMissing"
        case .networkConstraint: "networkConstraint"
        case .diskBelowFloor: "diskBelowFloor"
        case .noSpace: "noSpace"
        case .diskNotResponding: "diskNotResponding"
        case .strictOrder: "strictOrder"
        case .order: "order"
        case .queueLimit: "queueLimit"
        case .accountLimit: "accountLimit"
        case .slotHeld: "slotHeld"
        case .noHost: "noHost"
        case .leased: "leased"
        case .lastRunNotEnded: "lastRunNotEnded"
        case .runsNotEnded: "runsNotEnded"
        case .storageRefusesChanges: "storageRefusesChanges"
        }
    }
}
