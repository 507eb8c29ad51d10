import Foundation
import TransferKit
import TransferOutput

extension ForegroundRun {
    /// Shows a line whenever no session runs and the queue waits until a certain time, such as the time of the next attempt. Returns when the
    /// events end.
    ///
    /// - Parameter events: The events of the run; nil to return immediately.
    static func showWaits(_ events: QueueEvents?, of queue: TransferQueue, on display: any ProgressDisplay) async {
        /// The sessions for which the display shows a line about a failed attempt or a wait. The line contains the time of the next
        /// attempt.
        var known: Set<SessionID> = []
        var shown: (id: SessionID, why: WaitReason?)?
        guard let events else { return }
        for await event in events {
            switch event.kind {
            case .attemptFailed(let id, _, _): known.insert(id)
            case .changed(let ids, .waiting) where ids.count == 1: known.formUnion(ids)
            case .queueStarted, .didDeactivate, .changed, .updated, .added, .removed, .cancelled, .gap: break
            default: continue
            }
            guard let (session, others) = await firstDue(in: queue) else { continue }
            if let shown, shown.id == session.id, shown.why?.isSame(as: session.why) ?? (session.why == nil) { continue }
            shown = (session.id, session.why)
            if known.contains(session.id), session.why?.isRetry == true { continue }
            await display.note(line(about: session, others: others))
        }
    }

    /// The waiting session that is due first, and the number of other waiting sessions. Nil if the queue is not running, if a session is running
    /// or can start now, or if no waiting session has a due time.
    private static func firstDue(in queue: TransferQueue) async -> (session: SessionStatus, others: Int)? {
        let status = await queue.status()
        guard status.mode == .running, status.running == 0, status.scheduled > 0, await !queue.hasLiveRuns else { return nil }
        let waiting = await queue.firstWaiting(of: status)
        guard !waiting.contains(where: { $0.why?.canEndSoon ?? true }) else { return nil }
        let due = waiting.compactMap { session in session.why?.end.map { (session: session, date: $0) } }
        return due.min { $0.date < $1.date }.map { ($0.session, status.waiting - 1) }
    }

    private static func line(about session: SessionStatus, others: Int) -> String {
        let reason: String =
            switch session.why {
            case .notBefore(let date): "starts at \(Figures.date(date))"
            case let why?: SessionDescription.reason(why, session.error)
            case nil: ""
            }
        let rest = others > 0 ? " (\(Figures.count(others, "other session")) waiting)" : ""
        return "waiting    \(SessionDescription.shortID(session.id)) \(session.name): \(reason)\(rest)".withoutControlCharacters
    }
}

extension TransferQueue {
    /// Returns at least the first thousand waiting sessions, or all if there are fewer.
    func firstWaiting(of status: QueueStatus) async -> [SessionStatus] {
        let (pageSize, wantedCount) = (1_000, min(status.waiting, 1_000))
        var found: [SessionStatus] = []
        var start = 0
        while found.count < wantedCount, let sessions = try? await self.sessions(start..<start + pageSize), !sessions.isEmpty {
            found += sessions.filter { $0.state == .waiting }
            start += pageSize
        }
        return found
    }
}

extension WaitReason {
    /// The time until which the session waits; nil if the reason has no time.
    fileprivate var end: Date? {
        switch self {
        case .retry(let date), .notBefore(let date), .endpointsUnavailable(let date, _): date
        default: nil
        }
    }

    /// Whether another reason is the same. The two times may differ slightly, because they are computed from the uptime.
    fileprivate func isSame(as other: WaitReason?) -> Bool {
        guard let end, let otherEnd = other?.end else { return self == other }
        return abs(end.timeIntervalSince(otherEnd)) < 0.5 && isRetry == other?.isRetry
    }

    fileprivate var isRetry: Bool {
        switch self {
        case .retry, .endpointsUnavailable: true
        default: false
        }
    }

    /// Whether a session with this reason, or the session for which it waits, can start at any moment.
    fileprivate var canEndSoon: Bool {
        switch self {
        case .order, .queueLimit, .accountLimit, .yielded, .displaced: true
        default: false
        }
    }
}
