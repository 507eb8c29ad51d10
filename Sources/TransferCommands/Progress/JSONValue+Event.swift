import TransferCore
import TransferKit

extension JSONValue {
    /// An event: its number, time, name and session first, then what only events of its kind have.
    init(_ event: QueueEvent, index: Int?) {
        let (name, details) = Self.nameAndDetails(event.kind)
        self = .object(
            [
                ("revision", .integer(Int64(clamping: event.revision))),
                ("time", JSONValue(event.time)),
                ("event", .string(name)),
                ("id", JSONValue(event.session?.description)),
                ("index", JSONValue(index)),
            ] + details)
    }

    private static func nameAndDetails(_ kind: QueueEvent.Kind) -> (String, [(name: String, value: JSONValue)]) {
        switch kind {
        case .queueStarted: ("queueStarted", [])
        case .queueStopped: ("queueStopped", [])
        case .queueBecameIdle: ("queueBecameIdle", [])
        case .storageFailed(let error):
            ("storageFailed", [("error", ["code": .string(error.code.rawValue), "message": .string(error.message)])])
        case .gap(let from, let to):
            ("gap", [("from", .integer(Int64(clamping: from))), ("to", .integer(Int64(clamping: to)))])
        case .added(let ids, _): ("added", [("ids", identities(ids))])
        case .removed(let ids, _): ("removed", [("ids", identities(ids))])
        case .limitsChanged: ("limitsChanged", [])
        case .quarantined(let text): ("quarantined", [("message", .string(text))])
        case .willChangeQueue(let revision): ("willChangeQueue", [("orderRevision", .integer(Int64(clamping: revision)))])
        case .didChangeQueue(let revision): ("didChangeQueue", [("orderRevision", .integer(Int64(clamping: revision)))])
        case .moved(_, let from, let to): ("moved", [("from", JSONValue(from)), ("to", JSONValue(to))])
        case .willActivate: ("willActivate", [])
        case .didActivate: ("didActivate", [])
        case .willStartRunning: ("willStartRunning", [])
        case .didStartRunning: ("didStartRunning", [])
        case .willStopRunning: ("willStopRunning", [])
        case .didStopRunning: ("didStopRunning", [])
        case .willDeactivate: ("willDeactivate", [])
        case .didDeactivate: ("didDeactivate", [])
        case .changed(let ids, let state): ("changed", [("ids", identities(ids)), ("state", .string(state.rawValue))])
        case .updated: ("updated", [])
        case .cancelled(let ids): ("cancelled", [("ids", identities(ids))])
        case .endpointChanged(_, let from, let to): ("endpointChanged", [("from", JSONValue(from)), ("to", .string(to))])
        case .progress(_, let statistics): ("progress", members(statistics))
        case .itemCompleted(_, let position, let receipt):
            (
                "itemCompleted",
                [
                    ("position", JSONValue(position)), ("bytes", JSONValue(receipt.bytes)), ("remoteURL", JSONValue(receipt.remoteURL)),
                    ("checksum", JSONValue(receipt.checksum)), ("warnings", .array(receipt.warnings.map(JSONValue.string))),
                ]
            )
        case .itemFailed(_, let position, let error):
            ("itemFailed", [("position", JSONValue(position)), ("error", JSONValue(error, file: nil))])
        case .itemRestarted(_, let position, let error):
            ("itemRestarted", [("position", JSONValue(position)), ("error", JSONValue(error, file: nil))])
        case .attemptFailed(_, let error, let retryAt):
            ("attemptFailed", [("error", JSONValue(error, file: nil)), ("retryAt", JSONValue(retryAt))])
        case .completed: ("completed", [])
        case .failed(_, let error): ("failed", [("error", JSONValue(error, file: nil))])
        case .accountBlocked(let account, let error):
            ("accountBlocked", [("account", .string(account)), ("error", JSONValue(error, file: nil))])
        case .needsCredentials(let account, let error):
            ("needsCredentials", [("account", .string(account)), ("error", JSONValue(error, file: nil))])
        case .accountUnblocked(let account): ("accountUnblocked", [("account", .string(account))])
        }
    }

    private static func identities(_ ids: [SessionID]) -> JSONValue {
        .array(ids.map { .string($0.description) })
    }

    private static func members(_ statistics: SessionStatistics) -> [(name: String, value: JSONValue)] {
        [
            ("files", JSONValue(statistics.files)), ("filesDone", JSONValue(statistics.filesDone)),
            ("filesFailed", JSONValue(statistics.filesFailed)), ("bytesTotal", JSONValue(statistics.bytesTotal)),
            ("bytesDone", JSONValue(statistics.bytesDone)), ("bytesSent", JSONValue(statistics.bytesSent)),
            ("rate", JSONValue(statistics.rate)), ("averageRate", JSONValue(statistics.averageRate)),
            ("secondsRemaining", JSONValue(statistics.secondsRemaining)),
        ]
    }
}
