import Foundation
import SystemPackage
import TransferKit

/// Cuts what can be of any size into parts of a bounded size.
struct RequestStaging {
    private static let partSize = 1 << 19
    private static let idsOfPart = 10_000

    private(set) var parts: [StagedPart] = []
    private let workingFolder: FilePath

    init() {
        workingFolder = FilePath(FileManager.default.currentDirectoryPath)
    }

    mutating func stage(_ requests: [SessionRequest]) throws(QueueError) {
        for request in requests {
            parts.append(.session(SessionHead(request, in: workingFolder)))
            try stage(request.items)
        }
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
            record.data = data.isEmpty ? nil : data.prefix(ItemRecord.pieceSize)
            if cost + record.cost > Self.partSize { parts += flushed(&records, &cost) }
            records.append(record)
            cost += record.cost
            guard data.count > ItemRecord.pieceSize else { continue }
            parts += flushed(&records, &cost)
            for start in stride(from: ItemRecord.pieceSize, to: data.count, by: ItemRecord.pieceSize) {
                parts.append(.bytes(data.dropFirst(start).prefix(ItemRecord.pieceSize)))
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
