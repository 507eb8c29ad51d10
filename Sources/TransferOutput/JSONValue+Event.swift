import TransferCore
package import TransferKit

extension QueueEvent {
    /// The index that the event contains: the index of the first added or removed session, or of a moved session after the move.
    package var index: Int? {
        switch kind {
        case .added(_, let index): index
        case .removed(_, let indices): indices.first
        case .moved(_, _, let index): index
        default: nil
        }
    }
}

extension JSONValue {
    /// The JSON object of an event: the revision, time, name, session and index, followed by the members for the event's kind.
    package init(_ event: QueueEvent, index: Int?) {
        self = .object(
            [
                ("revision", .integer(Int64(clamping: event.revision))),
                ("time", JSONValue(event.time)),
                ("event", .string(event.kind.name)),
                ("id", JSONValue(event.session?.description)),
                ("index", JSONValue(index)),
            ] + Self.details(event.kind))
    }

    private static func details(_ kind: QueueEvent.Kind) -> [(name: String, value: JSONValue)] {
        switch kind {
        case .storageFailed(let error):
            [("error", ["code": .string(error.code.rawValue), "message": .string(error.message)])]
        case .gap(let from, let to):
            [("from", .integer(Int64(clamping: from))), ("to", .integer(Int64(clamping: to)))]
        case .added(let ids, _): [("ids", identities(ids))]
        case .removed(let ids, _), .draftsRemoved(let ids): [("ids", identities(ids))]
        case .quarantined(let text), .storeTrimmed(let text): [("message", .string(text))]
        case .willChangeQueue(let revision): [("orderRevision", .integer(Int64(clamping: revision)))]
        case .didChangeQueue(let revision): [("orderRevision", .integer(Int64(clamping: revision)))]
        case .moved(_, let from, let to): [("from", JSONValue(from)), ("to", JSONValue(to))]
        case .changed(let ids, let state): [("ids", identities(ids)), ("state", .string(state.rawValue))]
        case .cancelled(let ids): [("ids", identities(ids))]
        case .endpointChanged(_, let from, let to): [("from", JSONValue(from)), ("to", .string(to))]
        case .progress(_, let statistics): JSONValue(statistics).members
        case .totalProgress(let statistics): JSONValue(SessionStatistics(statistics)).members
        case .itemStarted(_, let position), .streamDelayed(_, let position): [("position", JSONValue(position))]
        case .itemProgress(_, let position, let progress):
            [
                ("position", JSONValue(position)), ("bytesTotal", JSONValue(progress.bytesTotal)),
                ("bytesDone", JSONValue(progress.bytesDone)),
                ("bytesSent", JSONValue(progress.bytesSent)),
            ]
        case .itemCompleted(_, let position, let receipt):
            [
                ("position", JSONValue(position)), ("bytes", JSONValue(receipt.bytes)), ("remoteURL", JSONValue(receipt.remoteURL)),
                ("checksum", JSONValue(receipt.checksum)), ("warnings", .array(receipt.warnings.map(JSONValue.string))),
            ]
        case .itemFailed(_, let position, let error):
            [("position", JSONValue(position)), ("error", JSONValue(error, file: nil))]
        case .itemRestarted(_, let position, let error):
            [("position", JSONValue(position)), ("error", JSONValue(error, file: nil))]
        case .attemptFailed(_, let error, let retryAt):
            [("error", JSONValue(error, file: nil)), ("retryAt", JSONValue(retryAt))]
        case .failed(_, let error): [("error", JSONValue(error, file: nil))]
        case .accountBlocked(let account, let error):
            [("account", .string(account)), ("error", JSONValue(error, file: nil))]
        case .needsCredentials(let account, let error):
            [("account", .string(account)), ("error", JSONValue(error, file: nil))]
        case .accountUnblocked(let account): [("account", .string(account))]
        case .queueStarted, .queueStopped, .queueBecameIdle, .limitsChanged, .willActivate, .didActivate, .willStartRunning,
            .didStartRunning, .willStopRunning, .didStopRunning, .willDeactivate, .didDeactivate, .updated, .completed:
            []
        }
    }

    private static func identities(_ ids: [SessionID]) -> JSONValue {
        .array(ids.map { .string($0.description) })
    }

    /// The JSON object of the statistics that sessions and the queue have in common.
    init(_ statistics: SessionStatistics) {
        self = [
            "files": JSONValue(statistics.files),
            "filesDone": JSONValue(statistics.filesDone),
            "filesFailed": JSONValue(statistics.filesFailed),
            "bytesTotal": JSONValue(statistics.bytesTotal),
            "bytesDone": JSONValue(statistics.bytesDone),
            "bytesSent": JSONValue(statistics.bytesSent),
            "rate": JSONValue(statistics.rate),
            "averageRate": JSONValue(statistics.averageRate),
            "secondsRemaining": JSONValue(statistics.secondsRemaining),
        ]
    }
}

extension SessionStatistics {
    init(_ queue: QueueStatistics) {
        self.init(
            files: queue.files, filesDone: queue.filesDone, filesFailed: queue.filesFailed, bytesTotal: queue.bytesTotal,
            bytesDone: queue.bytesDone, bytesSent: queue.bytesSent, rate: queue.rate, averageRate: queue.averageRate,
            secondsRemaining: queue.secondsRemaining)
    }
}
