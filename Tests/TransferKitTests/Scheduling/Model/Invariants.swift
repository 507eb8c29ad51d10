import TransferKit

/// Conditions that must hold for a scheduler after each step, regardless of the predictions of ``ReferenceQueue``.
enum Invariants {
    /// Returns the first invariant that does not hold; nil if all hold.
    static func firstViolation(before: Observation, after: Observation, outcome: Outcome, event: ModelEvent, limits: SlotLimits) -> String?
    {
        let ids = after.sessions.map(\.id)
        guard Set(ids).count == ids.count else { return "a session occurs twice" }
        let old = Dictionary(uniqueKeysWithValues: before.sessions.map { ($0.id, $0) })
        for id in outcome.started {
            guard let session = old[id] else { continue }
            if session.target == .draft, !event.isUserCall { return "the draft \(id.testName) started without a call" }
            if session.target == .paused || session.target == .held || session.target.isEnded, !event.isUserCall {
                return "\(id.testName) was \(session.target) and started without a call"
            }
        }
        let isActivated = after.sessions.contains { $0.state == .running && !$0.isEnding && old[$0.id]?.holdsSlot != true }
        if isActivated, after.slots > limits.queue { return "an activation above the queue's limit" }
        if after.runs(of: nil) > max(limits.queue, before.runs(of: nil)) { return "a run above the queue's limit" }
        for (account, limit) in limits.accounts {
            let accountSessions = after.sessions.filter { limits.account(of: $0.id) == account }
            let isActivated = accountSessions.contains { $0.state == .running && !$0.isEnding && old[$0.id]?.holdsSlot != true }
            let slots = after.runs(of: account) + accountSessions.count { $0.holdsSlot && !$0.hasRun }
            if isActivated, slots > limit { return "an activation above the limit of \(account)" }
            if after.runs(of: account) > max(limit, before.runs(of: account)) { return "a run above the limit of \(account)" }
        }
        if after.mode == "stopped", after.sessions.contains(where: \.hasRun) { return "stopped, but a session runs" }
        if after.mode == "running", after.sessions.contains(where: { $0.state == .waiting && $0.why == nil }) {
            return "a session waits without a reason"
        }
        if after.isIdle, after.sessions.contains(where: \.hasRun) { return "idle, but a session runs" }
        return nil
    }
}

extension Observation {
    /// Returns the number of runs in progress of one account, or of all accounts if `account` is nil.
    fileprivate func runs(of account: String?) -> Int {
        account.map { runs[$0] ?? 0 } ?? runs.values.reduce(0, +)
    }

    /// The number of slots in use, including the slots of removed sessions.
    fileprivate var slots: Int { runs(of: nil) + sessions.count { $0.holdsSlot && !$0.hasRun } }
}

/// The limits of a queue, and the account of each session.
struct SlotLimits {
    var queue: Int
    var accounts: [String: Int]
    var owners: [SessionID: String]

    func account(of id: SessionID) -> String? { owners[id] }
}

extension ModelEvent {
    /// Whether the event is a call that may start a paused, held or ended session.
    var isUserCall: Bool {
        if case .command(.perform) = self { true } else { false }
    }
}
