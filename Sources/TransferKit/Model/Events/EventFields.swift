import Foundation
import TransferCore

/// An event as a flat JSON object. Other programs receive events in this form, and the rows of the change log are derived from it.
///
/// The event's name is the name of its ``QueueEvent/Kind`` case. The meaning of a released name or member never changes.
struct EventFields: Codable {
    var event: String?
    var id: SessionID?
    var ids: [SessionID]?
    var index: Int?
    var indices: [Int]?
    var from: UInt64?
    var to: UInt64?
    var orderRevision: UInt64?
    var state: SessionState?
    var position: Int64?
    var statistics: SessionStatistics?
    var totals: QueueStatistics?
    var progress: ItemProgress?
    var receipt: TransferReceipt?
    var error: TransferError?
    var storageError: QueueError?
    var retryAt: Date?
    var account: String?
    var endpoint: String?
    var previousEndpoint: String?
    var message: String?
}

extension EventFields {
    init(_ kind: QueueEvent.Kind) {
        event = kind.name
        switch kind {
        case .queueStarted, .queueStopped, .queueBecameIdle, .limitsChanged: break
        case .storageFailed(let error): storageError = error
        case .quarantined(let text), .storeTrimmed(let text): message = text
        case .gap(let from, let to): (self.from, self.to) = (from, to)
        case .willChangeQueue(let revision), .didChangeQueue(let revision): orderRevision = revision
        case .added(let ids, let index): (self.ids, self.index) = (ids, index)
        case .removed(let ids, let indices): (self.ids, self.indices) = (ids, indices)
        case .moved(let id, let from, let to): (self.id, self.from, self.to) = (id, UInt64(clamping: from), UInt64(clamping: to))
        case .willActivate(let id), .didActivate(let id), .willStartRunning(let id), .didStartRunning(let id), .willStopRunning(let id),
            .didStopRunning(let id), .willDeactivate(let id), .didDeactivate(let id), .updated(let id), .completed(let id):
            self.id = id
        case .changed(let ids, let state): (self.ids, self.state) = (ids, state)
        case .failed(let id, let error): (self.id, self.error) = (id, error)
        case .cancelled(let ids), .draftsRemoved(let ids): self.ids = ids
        case .progress(let id, let statistics): (self.id, self.statistics) = (id, statistics)
        case .totalProgress(let totals): self.totals = totals
        case .itemStarted(let id, let position), .streamDelayed(let id, let position): (self.id, self.position) = (id, position)
        case .itemProgress(let id, let position, let progress): (self.id, self.position, self.progress) = (id, position, progress)
        case .itemCompleted(let id, let position, let receipt): (self.id, self.position, self.receipt) = (id, position, receipt)
        case .itemFailed(let id, let position, let error), .itemRestarted(let id, let position, let error):
            (self.id, self.position, self.error) = (id, position, error)
        case .attemptFailed(let id, let error, let retryAt): (self.id, self.error, self.retryAt) = (id, error, retryAt)
        case .endpointChanged(let id, let from, let to): (self.id, previousEndpoint, endpoint) = (id, from, to)
        case .accountBlocked(let account, let error), .needsCredentials(let account, let error):
            (self.account, self.error) = (account, error)
        case .accountUnblocked(let account): self.account = account
        }
    }

    /// The event; nil if this version does not know its name, or a member is missing or invalid.
    var kind: QueueEvent.Kind? {
        switch event {
        case "queueStarted": .queueStarted
        case "queueStopped": .queueStopped
        case "queueBecameIdle": .queueBecameIdle
        case "limitsChanged": .limitsChanged
        case "storageFailed": storageError.map { .storageFailed($0) }
        case "quarantined": message.map { .quarantined($0) }
        case "storeTrimmed": message.map { .storeTrimmed($0) }
        case "totalProgress": totals.map { .totalProgress($0) }
        case "accountUnblocked": account.map { .accountUnblocked(account: $0) }
        case "accountBlocked": accountAndError { .accountBlocked(account: $0, $1) }
        case "needsCredentials": accountAndError { .needsCredentials(account: $0, $1) }
        case "gap", "willChangeQueue", "didChangeQueue", "added", "removed", "moved", "changed", "cancelled", "draftsRemoved": orderKind
        default: id.flatMap(sessionKind)
        }
    }

    private func accountAndError(_ make: (String, TransferError) -> QueueEvent.Kind) -> QueueEvent.Kind? {
        guard let account, let error else { return nil }
        return make(account, error)
    }

    private var orderKind: QueueEvent.Kind? {
        switch (event, orderRevision, ids) {
        case ("willChangeQueue", let revision?, _): .willChangeQueue(orderRevision: revision)
        case ("didChangeQueue", let revision?, _): .didChangeQueue(orderRevision: revision)
        case ("added", _, let ids?): index.map { .added(ids, index: $0) }
        case ("removed", _, let ids?): indices.flatMap { $0.count == ids.count ? .removed(ids, indices: $0) : nil }
        case ("changed", _, let ids?): state.map { .changed(ids, $0) }
        case ("cancelled", _, let ids?): .cancelled(ids)
        case ("draftsRemoved", _, let ids?): .draftsRemoved(ids)
        default: rangeKind
        }
    }

    /// The event if it is a gap or a move, which have the members `from` and `to`.
    private var rangeKind: QueueEvent.Kind? {
        guard let from, let to else { return nil }
        if event == "gap" { return .gap(from: from, to: to) }
        guard event == "moved", let id, let from = Int(exactly: from), let to = Int(exactly: to) else { return nil }
        return .moved(id, from: from, to: to)
    }

    private func sessionKind(_ id: SessionID) -> QueueEvent.Kind? {
        switch event {
        case "willActivate": .willActivate(id)
        case "didActivate": .didActivate(id)
        case "willStartRunning": .willStartRunning(id)
        case "didStartRunning": .didStartRunning(id)
        case "willStopRunning": .willStopRunning(id)
        case "didStopRunning": .didStopRunning(id)
        case "willDeactivate": .willDeactivate(id)
        case "didDeactivate": .didDeactivate(id)
        case "updated": .updated(id)
        case "completed": .completed(id)
        case "progress": statistics.map { .progress(id, $0) }
        case "itemStarted": position.map { .itemStarted(id, position: $0) }
        case "streamDelayed": position.map { .streamDelayed(id, position: $0) }
        case "itemProgress": position.flatMap { position in progress.map { .itemProgress(id, position: position, $0) } }
        case "endpointChanged": endpoint.map { .endpointChanged(id, from: previousEndpoint, to: $0) }
        case "itemCompleted": position.flatMap { position in receipt.map { .itemCompleted(id, position: position, $0) } }
        default: error.flatMap { failureKind(id, $0) }
        }
    }

    private func failureKind(_ id: SessionID, _ error: TransferError) -> QueueEvent.Kind? {
        switch event {
        case "failed": .failed(id, error)
        case "itemFailed": position.map { .itemFailed(id, position: $0, error) }
        case "itemRestarted": position.map { .itemRestarted(id, position: $0, error) }
        case "attemptFailed": retryAt.map { .attemptFailed(id, error, retryAt: $0) }
        default: nil
        }
    }
}
