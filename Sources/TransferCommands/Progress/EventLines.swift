import Foundation
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

/// Facts about an event that the event does not contain.
struct EventFacts: Sendable {
    /// Why the session of the event waits; nil if that is unknown.
    var reason: WaitReason?
    /// The time at which the back-off of the session's previous endpoint ends; nil if that endpoint is available.
    var nextUse: Date?
    /// The name of the event's file; nil if the event is not about a file, or the name is unknown.
    var file: String?

    init() {}

    private init(ofFileIn kind: QueueEvent.Kind, in queue: any ControllableQueue) async {
        guard let (id, position) = kind.shownFile, let item = try? await queue.items(of: id, from: position, limit: 1).first else { return }
        if item.position == position { file = String(decoding: item.destination.lastComponent, as: UTF8.self) }
    }

    /// Reads the name of the file and, for a current event, the reason for waiting, from any type of queue.
    ///
    /// - Parameter isCurrent: Whether the event just happened, so that the session's current reason for waiting belongs to the event.
    init(of event: QueueEvent, in queue: any ControllableQueue, isCurrent: Bool) async {
        await self.init(ofFileIn: event.kind, in: queue)
        if isCurrent, let id = event.kind.waitingSession { reason = try? await queue.status(of: id).why }
    }

    /// Reads all facts, from a queue in this process.
    init(of kind: QueueEvent.Kind, in queue: TransferQueue) async {
        await self.init(ofFileIn: kind, in: queue)
        if let id = kind.waitingSession { reason = try? await queue.status(of: id).why }
        guard case .endpointChanged(let id, let before?, _) = kind, let account = try? await queue.status(of: id).account else { return }
        nextUse = await queue.account(account)?.unavailableEndpoints.first { $0.location == before }?.nextAttempt
    }
}

/// Formats successive events as lines, and omits information that an earlier line contained.
struct EventLines {
    /// The error of each session's last failed file.
    private var itemErrors: [SessionID: TransferError] = [:]
    /// The sessions whose last reported event was a failed attempt.
    private var retrying: Set<SessionID> = []

    /// A line for an event; nil if users don't need the event, or an earlier line contained the same information.
    ///
    /// - Parameters:
    ///   - name: The name of the event's session.
    ///   - facts: Facts that the event does not contain.
    mutating func line(of kind: QueueEvent.Kind, name: String?, facts: EventFacts = EventFacts()) -> String? {
        switch kind {
        case .attemptFailed(let id, _, _): retrying.insert(id)
        case .itemFailed(let id, _, let error): itemErrors[id] = error
        case .didActivate(let id), .didStartRunning(let id): retrying.remove(id)
        case .completed(let id): forget(id)
        case .cancelled(let ids), .removed(let ids, _): for id in ids { forget(id) }
        case .failed(let id, let error):
            defer { forget(id) }
            if itemErrors[id] == error { return "failed     \(name ?? "")".withoutControlCharacters }
        default: break
        }
        if let id = kind.waitingSession, retrying.remove(id) != nil, facts.reason?.isRetry ?? true { return nil }
        let line = EventDescription.line(
            of: kind, name: name, reason: facts.reason.map(Self.text), nextUse: facts.nextUse, file: facts.file)
        guard case .accountBlocked(let account, _) = kind else { return line }
        return line.map { "\($0) After fixing this: transferq account unblock \(account.shellWord)" }
    }

    /// The reason in a line about a waiting session. The error of a blocked account is in the line about the account.
    private static func text(of reason: WaitReason) -> String {
        if case .accountBlocked = reason { "its account is blocked" } else { SessionDescription.reason(reason, nil) }
    }

    private mutating func forget(_ id: SessionID) {
        itemErrors[id] = nil
        retrying.remove(id)
    }
}

extension WaitReason {
    fileprivate var isRetry: Bool { if case .retry = self { true } else { false } }
}

extension QueueEvent.Kind {
    /// The file that a line about the event names; nil if the line names no file.
    fileprivate var shownFile: (session: SessionID, position: Int64)? {
        switch self {
        case .itemFailed(let id, let position, _), .itemRestarted(let id, let position, _): (id, position)
        case .itemCompleted(let id, let position, let receipt): receipt.warnings.isEmpty ? nil : (id, position)
        default: nil
        }
    }

    /// The session that now waits; nil for other events, and for an event about several sessions.
    var waitingSession: SessionID? {
        if case .changed(let ids, .waiting) = self, ids.count == 1 { ids[0] } else { nil }
    }
}
