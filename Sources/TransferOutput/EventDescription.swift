package import Foundation
import TransferCore
package import TransferKit

/// Formats events as human-readable lines.
package enum EventDescription {
    /// A line for an event; nil for events that users don't need, or that the caller displays differently.
    ///
    /// - Parameters:
    ///   - name: The name of the event's session; nil if unknown.
    ///   - reason: The reason why the event's session waits; nil if unknown.
    ///   - nextUse: When the back-off of the session's previous endpoint ends; nil if that endpoint is available.
    ///   - file: The name of the event's file; nil to show its number in the session.
    package static func line(
        of kind: QueueEvent.Kind, name: String?, reason: String? = nil, nextUse: Date? = nil, file: String? = nil
    ) -> String? {
        let name = name ?? ""
        let line: String? =
            switch kind {
            case .didActivate: "started    \(name)"
            case .completed: "completed  \(name)"
            case .failed(_, let error): "failed     \(name): \(error)"
            case .attemptFailed(_, let error, let retryAt):
                "retrying   \(name) \(Figures.moment(retryAt)): \(error)"
            case .itemFailed(_, let position, let error): "gave up    \(name), file \(file ?? "\(position + 1)"): \(error)"
            case .itemCompleted(_, let position, let receipt) where !receipt.warnings.isEmpty:
                "warning    \(name), file \(file ?? "\(position + 1)"): \(receipt.warnings.joined(separator: " "))"
            case .streamDelayed: "delayed    \(name): the stream will be sent after it has ended"
            case .itemRestarted(_, let position, let error): "restarted  \(name), file \(file ?? "\(position + 1)"): \(error)"
            case .endpointChanged(_, let before?, let endpoint):
                "moved      \(name) from \(before) to \(endpoint)"
                    + (nextUse.map { "; next attempt at \(before) \(Figures.moment($0))" } ?? "")
            case .cancelled(let ids): "cancelled  \(subject(ids, name))"
            case .changed(let ids, .waiting): "waiting    \(subject(ids, name))\(reason.map(suffix) ?? "")"
            case .changed(let ids, let state) where [.paused, .held].contains(state):
                state.rawValue.padding(toLength: 11, withPad: " ", startingAt: 0) + subject(ids, name)
            case .accountBlocked(let account, let error): "blocked    account \"\(account)\": \(error)"
            case .needsCredentials(let account, _): "waiting    for new credentials for the account \"\(account)\""
            case .gap: "missed     some events"
            case .storageFailed(let error): "storage    \(error.message)"
            default: nil
            }
        return line?.withoutControlCharacters
    }

    private static func suffix(_ reason: String) -> String { reason.isEmpty ? "" : ": \(reason)" }

    private static func subject(_ ids: [SessionID], _ name: String) -> String {
        ids.count == 1 ? name : Figures.count(ids.count, "session")
    }

    /// A line for a change of the queue's mode, limits, order, sessions, accounts or storage; nil for other events, and for changes that
    /// ``line(of:name:reason:nextUse:file:)`` describes.
    package static func changeLine(of kind: QueueEvent.Kind, name: String?) -> String? {
        let line: String? =
            switch kind {
            case .queueStarted: "queue      started"
            case .queueStopped: "queue      stopped"
            case .limitsChanged: "queue      limits changed"
            case .added(let ids, let index): "added      \(subject(ids, name ?? "")) at index \(index)"
            case .removed(let ids, _): "removed    \(subject(ids, name ?? ""))"
            case .draftsRemoved(let ids): "removed    \(subject(ids, name ?? "")) from the drafts"
            case .moved(_, let from, let to): "moved      \(name ?? "") from index \(from) to \(to)"
            case .updated: "changed    \(name ?? "")"
            case .accountUnblocked(let account): "unblocked  account \"\(account)\""
            case .quarantined(let text), .storeTrimmed(let text): "storage    \(text)"
            default: nil
            }
        return line?.withoutControlCharacters
    }

    /// A line with the name of an event and its session, state, endpoint or file. For events for which the other methods return nil.
    package static func plainLine(of kind: QueueEvent.Kind, name: String?) -> String {
        let subject: String =
            switch kind {
            case .changed(let ids, let state): "\(name ?? Figures.count(ids.count, "session")) to \(state.rawValue)"
            case .endpointChanged(_, _, let endpoint): "\(name ?? "") to \(endpoint)"
            case .itemStarted(_, let position): "\(name ?? ""), file \(position + 1)"
            default: name ?? ""
            }
        return (subject.isEmpty ? kind.name : "\(kind.name)  \(subject)").withoutControlCharacters
    }
}
