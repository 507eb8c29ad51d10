import Foundation
import GRDB
import TransferCore

/// The stored form of an event. Frequent kinds are written without `JSONEncoder`, which is slow. All kinds are read in the same way.
struct EventRow {
    /// The maximum number of sessions in a stored event. A reader of the log gets a gap instead of a larger event, because reading the
    /// queue again is faster than reading such an event.
    static let maximumSessions = 100_000

    var kind: String
    var sessions: Data?
    var number: Int64?
    var detail: String?

    /// The approximate size of the stored row, in bytes.
    var weight: Int64 { Int64(32 + kind.utf8.count + (sessions?.count ?? 0) + (detail?.utf8.count ?? 0)) }

    /// Reads an event row from a row of the change log, beginning with the third column.
    init(_ row: StoredRow) throws {
        kind = try row.decode(atIndex: 2)
        sessions = try row.decode(atIndex: 3)
        number = try row.decode(atIndex: 4)
        detail = try row.decode(atIndex: 5)
    }

    init(kind: String, sessions: Data?, number: Int64?, detail: String?) {
        self.kind = kind
        self.sessions = sessions
        self.number = number
        self.detail = detail
    }

    init(_ event: QueueEvent.Kind) throws {
        var fields = EventFields(event)
        kind = event.name
        let ids = fields.ids ?? fields.id.map { [$0] } ?? []
        guard ids.count <= Self.maximumSessions else { return }
        sessions = ids.isEmpty ? nil : Self.data(ids)
        switch event {
        case .willChangeQueue(let revision), .didChangeQueue(let revision): number = Int64(clamping: revision)
        case .added(_, let index): number = Int64(index)
        case .removed(_, let indices):
            number = indices.first.map(Int64.init)
            let isOneRange = (indices.last ?? 0) - (indices.first ?? 0) == indices.count - 1
            if !isOneRange { detail = "{\"indices\":[\(indices.map(String.init).joined(separator: ","))]}" }
        case .moved(_, let from, let to): detail = "{\"from\":\(from),\"to\":\(to)}"
        case .changed(_, let state): detail = "{\"state\":\"\(state.rawValue)\"}"
        case .itemCompleted(_, let position, let receipt):
            number = position
            detail = "{\"receipt\":\(JSONText.object(receipt))}"
        case .endpointChanged(_, let from, let to):
            let previous = from.map { ",\"previousEndpoint\":\(JSONText.string($0))" } ?? ""
            detail = "{\"endpoint\":\(JSONText.string(to))\(previous)}"
        case .queueStarted, .queueStopped, .queueBecameIdle, .limitsChanged, .willActivate, .didActivate, .willStartRunning,
            .didStartRunning, .willStopRunning, .didStopRunning, .willDeactivate, .didDeactivate, .updated, .completed, .cancelled,
            .draftsRemoved:
            break
        default:
            number = fields.position ?? fields.retryAt.map { StoreCoding.encode($0) }
            (fields.event, fields.id, fields.ids, fields.position, fields.retryAt) = (nil, nil, nil, nil, nil)
            detail = try StoreCoding.encode(fields)
        }
    }

    /// The event; nil if the row is damaged, if this version does not know its kind, or if the event had too many sessions to be stored.
    var event: QueueEvent.Kind? {
        var fields = EventFields()
        if let detail {
            guard let stored = try? StoreCoding.decode(EventFields.self, from: detail) else { return nil }
            fields = stored
        }
        let ids = sessions.flatMap(Self.sessionIDs)
        fields.event = kind
        fields.id = ids?.first
        fields.ids = ids
        switch kind {
        case "willChangeQueue", "didChangeQueue": fields.orderRevision = number.flatMap(UInt64.init(exactly:))
        case "added": fields.index = number.flatMap(Int.init(exactly:))
        case "removed":
            // The index in a damaged row can be any number.
            if fields.indices == nil, let first = number.flatMap(Int.init(exactly:)) {
                let (end, overflow) = first.addingReportingOverflow(ids?.count ?? 0)
                guard first >= 0, !overflow else { return nil }
                fields.indices = Array(first..<end)
            }
        case "attemptFailed": fields.retryAt = number.map(StoreCoding.date)
        default: fields.position = number
        }
        return fields.kind
    }

    private static func data(_ ids: [SessionID]) -> Data {
        var data = Data(capacity: 16 * ids.count)
        for id in ids { unsafe withUnsafeBytes(of: id.uuid.uuid) { unsafe data.append(contentsOf: $0) } }
        return data
    }

    private static func sessionIDs(_ data: Data) -> [SessionID]? {
        guard data.count.isMultiple(of: 16) else { return nil }
        return unsafe data.withUnsafeBytes { bytes in
            stride(from: 0, to: bytes.count, by: 16).map {
                // The count is a multiple of 16 bytes, so each ID is complete.
                unsafe SessionID(uuid: UUID(uuid: bytes.loadUnaligned(fromByteOffset: $0, as: uuid_t.self)))
            }
        }
    }
}

/// Writes the JSON of frequent values. `JSONEncoder` would be too slow for them.
enum JSONText {
    static func object(_ receipt: TransferReceipt) -> String {
        var text = "{\"bytes\":\(receipt.bytes)"
        if let url = receipt.remoteURL { text += ",\"remoteURL\":\(string(url))" }
        if let checksum = receipt.checksum { text += ",\"checksum\":\(string(checksum))" }
        if let response = receipt.serverResponse { text += ",\"answer\":\(object(response))" }
        return text + ",\"warnings\":[\(receipt.warnings.map(string).joined(separator: ","))]}"
    }

    private static func object(_ response: ServerResponse) -> String {
        let type = response.mediaType.map { "\"mediaType\":\(string($0))," } ?? ""
        return "{\"status\":\(response.status),\(type)\"text\":\(string(response.text)),\"isTruncated\":\(response.isTruncated)}"
    }

    /// Returns a JSON string (RFC 8259, section 7).
    static func string(_ value: String) -> String {
        guard value.utf8.contains(where: { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C }) else { return "\"\(value)\"" }
        var text = "\""
        for scalar in value.unicodeScalars {
            switch scalar.value {
            case 0x22, 0x5C: text += "\\\(scalar)"
            case ..<0x20: text += "\\u00" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16)
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }
}
