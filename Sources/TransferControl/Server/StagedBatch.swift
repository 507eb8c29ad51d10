import Foundation
import TransferKit

/// What a client has sent of a request that can be of any size.
struct StagedBatch {
    /// How much a client may have sent, in bytes as they come. What a process holds for its clients has to have a bound.
    static let limit = 256 << 20

    private(set) var ids: [SessionID] = []
    private var sessions: [(head: SessionHead, items: [ItemRecord])] = []
    private var items: [ItemRecord] = []
    private var size = 0

    mutating func take(_ part: StagedPart, size: Int) {
        self.size += size
        guard self.size <= Self.limit else {
            (ids, sessions, items) = ([], [], [])
            return
        }
        switch part {
        case .sessions(let whole): sessions += whole.map { ($0.head, $0.items) }
        case .session(let head): sessions.append((head, []))
        case .items(let records):
            if sessions.isEmpty { items += records } else { sessions[sessions.count - 1].items += records }
        case .bytes(let bytes):
            if sessions.isEmpty { Self.append(bytes, to: &items) } else { Self.append(bytes, to: &sessions[sessions.count - 1].items) }
        case .ids(let ids): self.ids += ids
        }
    }

    private static func append(_ bytes: Data, to items: inout [ItemRecord]) {
        guard !items.isEmpty else { return }
        items[items.count - 1].data = (items[items.count - 1].data ?? Data()) + bytes
    }

    /// - Throws: ``QueueError`` with the code `invalidMessage`.
    func check() throws(QueueError) {
        guard size <= Self.limit else {
            throw QueueError(.invalidMessage, "One request takes at most \(Self.limit) bytes; cut it into several.")
        }
    }

    func requests() throws -> [SessionRequest] { try sessions.map { try $0.head.request($0.items) } }

    func transferItems() throws -> [TransferItem] { try items.map { try $0.item } }
}
