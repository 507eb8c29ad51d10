import Foundation
import SystemPackage
import TransferKit

/// Splits the content of a request into parts that each fit into one message. The client sends the parts before the request itself.
struct RequestStaging {
    /// The approximate maximum size of a part, in bytes.
    private static let partSize = 1 << 19
    private static let idsPerPart = 10_000
    /// The maximum number of items in a session that fits into one part. A session with more items is split.
    private static let maximumUnsplitItems = 100

    private(set) var parts: [StagedPart] = []

    /// Adds the parts of sessions. Small sessions share a part, and large sessions are split into several parts.
    mutating func stage(_ requests: [SessionRequest]) throws(QueueError) {
        stageWorkingFolder()
        var pending: [WholeSession] = []
        var cost = 0
        func flush() {
            if !pending.isEmpty { parts.append(.sessions(pending)) }
            (pending, cost) = ([], 0)
        }
        for request in requests {
            let head = SessionHead(request)
            if let session = try unsplit(head, request.items), session.cost < Self.partSize {
                if cost + session.cost > Self.partSize { flush() }
                pending.append(session)
                cost += session.cost
            } else {
                flush()
                parts.append(.session(head))
                try stage(itemsOf: request.items)
            }
        }
        flush()
    }

    /// Returns the session with all its items for one part; nil if the session must be split, because it has too many items or an item is
    /// too large.
    private func unsplit(_ head: SessionHead, _ items: [TransferItem]) throws(QueueError) -> WholeSession? {
        guard items.count <= Self.maximumUnsplitItems else { return nil }
        var records: [ItemRecord] = []
        for item in items {
            let record = try ItemRecord(item)
            guard record.data?.count ?? 0 <= ItemRecord.contentSize else { return nil }
            records.append(record)
        }
        return WholeSession(head: head, items: records)
    }

    /// Adds the parts of items. The data of a large item is split into several parts.
    mutating func stage(_ items: [TransferItem]) throws(QueueError) {
        stageWorkingFolder()
        try stage(itemsOf: items)
    }

    private mutating func stageWorkingFolder() {
        parts.append(.workingFolder(FilePath.workingFolder.bytes))
    }

    private mutating func stage(itemsOf items: [TransferItem]) throws(QueueError) {
        var records: [ItemRecord] = []
        var cost = 0
        func flushed(_ records: inout [ItemRecord], _ cost: inout Int) -> [StagedPart] {
            defer { (records, cost) = ([], 0) }
            return records.isEmpty ? [] : [.items(records)]
        }
        for item in items {
            var record = try ItemRecord(item)
            let data = record.data ?? Data()
            record.data = data.isEmpty ? nil : data.prefix(ItemRecord.contentSize)
            if cost + record.cost > Self.partSize { parts += flushed(&records, &cost) }
            records.append(record)
            cost += record.cost
            guard data.count > ItemRecord.contentSize else { continue }
            parts += flushed(&records, &cost)
            for start in stride(from: ItemRecord.contentSize, to: data.count, by: ItemRecord.contentSize) {
                parts.append(.bytes(data.dropFirst(start).prefix(ItemRecord.contentSize)))
            }
        }
        parts += flushed(&records, &cost)
    }

    mutating func stage(_ ids: [SessionID]) {
        for start in stride(from: 0, to: ids.count, by: Self.idsPerPart) {
            parts.append(.ids(Array(ids[start..<min(start + Self.idsPerPart, ids.count)])))
        }
    }
}
