import Foundation
import TransferCore
import TransferKit

/// Formats events as human-readable lines.
enum EventDescription {
    /// A line for an event; nil for events that users don't need, or that the caller displays differently.
    static func line(of kind: QueueEvent.Kind, name: String?) -> String? {
        let name = name ?? ""
        let line: String? =
            switch kind {
            case .didActivate: "started    \(name)"
            case .completed: "completed  \(name)"
            case .failed(_, let error): "failed     \(name): \(error)"
            case .attemptFailed(_, let error, let retryAt):
                "retrying   \(name) \(moment(retryAt)): \(error)"
            case .itemFailed(_, let position, let error): "gave up    \(name), file \(position + 1): \(error)"
            case .itemCompleted(_, let position, let receipt) where !receipt.warnings.isEmpty:
                "warning    \(name), file \(position + 1): \(receipt.warnings.joined(separator: " "))"
            case .itemRestarted(_, let position, let error): "restarted  \(name), file \(position + 1): \(error)"
            case .endpointChanged(_, let before?, let endpoint): "moved      \(name) from \(before) to \(endpoint)"
            case .cancelled(let ids): "cancelled  \(subject(ids, name))"
            case .changed(let ids, let state) where [.waiting, .paused, .held].contains(state):
                state.rawValue.padding(toLength: 11, withPad: " ", startingAt: 0) + subject(ids, name)
            case .accountBlocked(let account, let error): "blocked    account \"\(account)\": \(error)"
            case .needsCredentials(let account, _): "waiting    for new credentials of the account \"\(account)\""
            case .gap: "missed     some events"
            case .storageFailed(let error): "storage    \(error.message)"
            default: nil
            }
        return line?.withoutControlCharacters
    }

    /// A time in the next hour as a number of seconds from now; another time as a date.
    private static func moment(_ date: Date) -> String {
        let seconds = date.timeIntervalSinceNow.rounded(.up)
        return (0...3_600).contains(seconds) ? "in \(Int(seconds)) s" : "at \(date.formatted(.iso8601))"
    }

    private static func subject(_ ids: [SessionID], _ name: String) -> String {
        ids.count == 1 ? name : Figures.count(ids.count, "session")
    }

    /// A line with the name and subject of any event.
    static func plainLine(of kind: QueueEvent.Kind, name: String?) -> String {
        let subject: String =
            switch kind {
            case .added(let ids, let index): "\(name ?? Figures.count(ids.count, "session")) at \(index)"
            case .moved(_, let from, let to): "\(name ?? "") from \(from) to \(to)"
            case .changed(let ids, let state): "\(name ?? Figures.count(ids.count, "session")) to \(state.rawValue)"
            case .removed(let ids, _), .cancelled(let ids), .draftsRemoved(let ids): name ?? Figures.count(ids.count, "session")
            case .endpointChanged(_, _, let endpoint): "\(name ?? "") to \(endpoint)"
            case .itemStarted(_, let position): "\(name ?? ""), file \(position + 1)"
            case .accountUnblocked(let account): "account \"\(account)\""
            case .quarantined(let text), .storeTrimmed(let text): text
            default: name ?? ""
            }
        return (subject.isEmpty ? kind.name : "\(kind.name)  \(subject)").withoutControlCharacters
    }
}
