import Foundation
import TransferKit

/// What a client has sent of a request that can be of any size.
struct StagedBatch {
    /// How much a client may have sent, in bytes as they come. What a process holds for its clients has to have a bound.
    static let standardLimit = 256 << 20

    private let limit: Int
    private(set) var ids: [SessionID] = []
    private var sessions: [(head: SessionHead, items: [ItemRecord])] = []
    private var items: [ItemRecord] = []
    private var size = 0

    init(limit: Int) {
        self.limit = limit
    }

    mutating func take(_ part: StagedPart, size: Int) {
        self.size += size
        guard self.size <= limit else {
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

    /// - Throws: ``QueueError`` with the code `invalidRequest`.
    func check() throws(QueueError) {
        guard size <= limit else {
            throw QueueError(
                .invalidRequest,
                "This takes more than \(limit) bytes, the most that the process which owns the queue takes at once. Nothing was done; cut it into several, or do it while no process owns the queue."
            )
        }
    }

    func requests() throws -> [SessionRequest] { try sessions.map { try $0.head.request($0.items) } }

    func transferItems() throws -> [TransferItem] { try items.map { try $0.item } }
}
