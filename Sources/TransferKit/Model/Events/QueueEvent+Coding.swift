import Foundation
import TransferCore

extension QueueEvent.Kind {
    /// The name of the case, which identifies the event in JSON, in the change log and in the output of `transferq`.
    public var name: String {
        switch self {
        case .queueStarted: "queueStarted"
        case .queueStopped: "queueStopped"
        case .queueBecameIdle: "queueBecameIdle"
        case .limitsChanged: "limitsChanged"
        case .storageFailed: "storageFailed"
        case .quarantined: "quarantined"
        case .storeTrimmed: "storeTrimmed"
        case .gap: "gap"
        case .willChangeQueue: "willChangeQueue"
        case .didChangeQueue: "didChangeQueue"
        case .added: "added"
        case .removed: "removed"
        case .moved: "moved"
        case .draftsRemoved: "draftsRemoved"
        case .willActivate: "willActivate"
        case .didActivate: "didActivate"
        case .willStartRunning: "willStartRunning"
        case .didStartRunning: "didStartRunning"
        case .willStopRunning: "willStopRunning"
        case .didStopRunning: "didStopRunning"
        case .willDeactivate: "willDeactivate"
        case .didDeactivate: "didDeactivate"
        case .changed: "changed"
        case .updated: "updated"
        case .completed: "completed"
        case .failed: "failed"
        case .cancelled: "cancelled"
        case .progress: "progress"
        case .totalProgress: "totalProgress"
        case .itemStarted: "itemStarted"
        case .itemProgress: "itemProgress"
        case .streamDelayed: "streamDelayed"
        case .itemCompleted: "itemCompleted"
        case .itemFailed: "itemFailed"
        case .itemRestarted: "itemRestarted"
        case .attemptFailed: "attemptFailed"
        case .endpointChanged: "endpointChanged"
        case .accountBlocked: "accountBlocked"
        case .accountUnblocked: "accountUnblocked"
        case .needsCredentials: "needsCredentials"
        }
    }
}

extension QueueEvent.Kind: Codable {
    /// Decodes the flat object that ``encode(to:)`` writes.
    ///
    /// - Throws: `DecodingError` for an event that this version does not know, or that lacks a member; see ``QueueEvent/init(from:)``.
    public init(from decoder: any Decoder) throws {
        let fields = try EventFields(from: decoder)
        guard let kind = fields.kind else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: "The event \"\(fields.event ?? "")\" is unknown, or lacks a member."))
        }
        self = kind
    }

    /// Encodes one flat object: `event` with the case's ``name``, `id` or `ids` of the sessions, and the case's own members.
    public func encode(to encoder: any Encoder) throws {
        try EventFields(self).encode(to: encoder)
    }
}

extension QueueEvent: Codable {
    private enum CodingKeys: CodingKey {
        case revision
        case time
    }

    /// Decodes an event from any version of the queue. An event unknown to this version becomes a ``Kind/gap(from:to:)``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let revision = try container.decode(UInt64.self, forKey: .revision)
        // A later version may write the members of a known event in a form that this version can't decode.
        let kind = (try? EventFields(from: decoder))?.kind
        self.init(
            revision: revision, time: try container.decode(Date.self, forKey: .time), kind: kind ?? .gap(from: revision, to: revision))
    }

    /// Encodes one flat object: `revision`, `time`, and the members of the ``Kind``. The encoder's date strategy determines the format of dates.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(revision, forKey: .revision)
        try container.encode(time, forKey: .time)
        try kind.encode(to: encoder)
    }
}
