import Foundation
import SystemPackage
import TransferKit

/// Splits requests of any size into parts of limited size.
struct RequestStaging {
    private static let partSize = 1 << 19
    private static let idsOfPart = 10_000
    private static let itemsOfWhole = 100

    private(set) var parts: [StagedPart] = []
    private let workingFolder: FilePath

    init() {
        workingFolder = .workingFolder
    }

    mutating func stage(_ requests: [SessionRequest]) throws(QueueError) {
        var together: [WholeSession] = []
        var cost = 0
        func flush() {
            if !together.isEmpty { parts.append(.sessions(together)) }
            (together, cost) = ([], 0)
        }
        for request in requests {
            let head = SessionHead(request, in: workingFolder)
            if let session = try whole(head, request.items), session.cost < Self.partSize {
                if cost + session.cost > Self.partSize { flush() }
                together.append(session)
                cost += session.cost
            } else {
                flush()
                parts.append(.session(head))
                try stage(request.items)
            }
        }
        flush()
    }

    /// Returns the session with its items; nil if there are too many items or an item is too large.
    private func whole(_ head: SessionHead, _ items: [TransferItem]) throws(QueueError) -> WholeSession? {
        guard items.count <= Self.itemsOfWhole else { return nil }
        var records: [ItemRecord] = []
        for item in items {
            let record = try ItemRecord(item, in: workingFolder)
            guard record.data?.count ?? 0 <= ItemRecord.contentSize else { return nil }
            records.append(record)
        }
        return WholeSession(head: head, items: records)
    }

    mutating func stage(_ items: [TransferItem]) throws(QueueError) {
        var records: [ItemRecord] = []
        var cost = 0
        func flushed(_ records: inout [ItemRecord], _ cost: inout Int) -> [StagedPart] {
            defer { (records, cost) = ([], 0) }
            return records.isEmpty ? [] : [.items(records)]
        }
        for item in items {
            var record = try ItemRecord(item, in: workingFolder)
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
        for start in stride(from: 0, to: ids.count, by: Self.idsOfPart) {
            parts.append(.ids(Array(ids[start..<min(start + Self.idsOfPart, ids.count)])))
        }
    }
}
