import Foundation
package import TransferCore

/// What an upload needs to resume later, and to be removed.
package struct UploadCheckpoint: Codable, Hashable, Sendable {
    package enum Stage: String, Codable, Sendable {
        /// The part is being written.
        case writing
        /// The part is complete, and gets its name: from now on, either name may be the file's.
        case placing
    }

    /// Bytes of the file that are sent one after the other, at the same time as other ranges.
    package struct Range: Codable, Hashable, Sendable {
        package var start: Int64
        package var end: Int64
        /// The position up to which the server has the bytes from the start.
        package var confirmed: Int64
        /// As ``UploadCheckpoint/acknowledged``, of this range.
        package var acknowledged: Int64?

        package init(start: Int64, end: Int64, confirmed: Int64, acknowledged: Int64? = nil) {
            (self.start, self.end, self.confirmed, self.acknowledged) = (start, end, confirmed, acknowledged)
        }

        /// Whether the positions are in order and within the file, as far as that can be seen without its size.
        fileprivate var isSound: Bool {
            0 <= start && start <= confirmed && confirmed <= end && (acknowledged.map { (confirmed...end).contains($0) } ?? true)
        }

        /// The range once the server has synced what it acknowledged.
        fileprivate var synced: Range { Range(start: start, end: end, confirmed: acknowledged ?? confirmed) }
    }

    /// The part's path, whose bytes need not be UTF-8.
    var part: Data
    /// The path that the part gets in the end.
    var final: Data
    var stage: Stage
    /// What the complete part was found to have, for the receipt.
    var checksum: String?
    /// The ranges that a large file is sent in at once, in order and without gaps; nil if it is sent from its start to its end.
    package var ranges: [Range]?
    /// Of a file that is sent in order, the position up to which the server acknowledged the bytes before the connection broke, without having synced
    /// them; nil if that is no further than what the checkpoint confirms. A server that ran on still has them.
    package var acknowledged: Int64?
    /// The permissions that the part gets before its name; nil to leave those that it has.
    var mode: UInt32?

    package init(part: [UInt8], final: [UInt8], stage: Stage, checksum: String? = nil) {
        self.part = Data(part)
        self.final = Data(final)
        self.stage = stage
        self.checksum = checksum
    }

    /// Nil if it is none of this transport.
    package init?(_ checkpoint: Checkpoint) {
        guard let stored = try? JSONDecoder().decode(UploadCheckpoint.self, from: checkpoint.data) else { return nil }
        self = stored
    }

    func encoded(confirmed: Int64) throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(self), confirmed: confirmed)
    }

    /// Puts ranges in order, and those together that follow each other without a gap in what the server has.
    static func joined(_ ranges: [Range]) -> [Range] {
        ranges.sorted { $0.start < $1.start }.reduce(into: []) { joined, range in
            guard let last = joined.last, last.confirmed == last.end else { return joined.append(range) }
            joined[joined.count - 1] = Range(
                start: last.start, end: range.end, confirmed: range.confirmed, acknowledged: range.acknowledged)
        }
    }

    // MARK: Positions

    /// Whether all positions are possible for a file: the ranges are all of it, each once. A checkpoint that comes from the store is checked before
    /// anything is computed with its numbers.
    ///
    /// - Parameters:
    ///   - confirmed: How many bytes the checkpoint confirms.
    ///   - size: The file's size in bytes; nil for a source that grows.
    package func isSound(_ confirmed: Int64, for size: Int64?) -> Bool {
        let end = size ?? .max
        guard (0...end).contains(confirmed) else { return false }
        guard let ranges else { return acknowledged.map { (confirmed...end).contains($0) } ?? true }
        guard size != nil, ranges.allSatisfy(\.isSound) else { return false }
        var position: Int64 = 0
        for range in ranges {
            guard range.start == position else { return false }
            position = range.end
        }
        return position == end && Self.sum(ranges) == confirmed
    }

    /// How large the part has to be for the checkpoint to be true.
    func neededSize(_ confirmed: Int64) -> Int64 {
        // Of ranges, up to where one has anything.
        ranges.map { $0.reduce(0) { $1.confirmed > $1.start ? $1.confirmed : $0 } } ?? confirmed
    }

    /// The checkpoint of a part whose acknowledged bytes are synced; nil if the server acknowledged no more than what is confirmed.
    func synced(_ confirmed: Int64) -> (checkpoint: UploadCheckpoint, confirmed: Int64)? {
        var checkpoint = self
        checkpoint.ranges = ranges?.map(\.synced)
        checkpoint.acknowledged = nil
        let more = checkpoint.ranges.map(Self.sum) ?? max(confirmed, acknowledged ?? 0)
        return more > confirmed ? (checkpoint, more) : nil
    }

    /// What the server acknowledged and was not seen to have synced.
    func unsynced(_ confirmed: Int64) -> [Swift.Range<Int64>] {
        let all = ranges?.map { $0.confirmed..<($0.acknowledged ?? $0.confirmed) } ?? [confirmed..<max(confirmed, acknowledged ?? 0)]
        return all.filter { !$0.isEmpty }
    }

    /// How many bytes ranges confirm, which are in order and do not overlap.
    static func sum(_ ranges: [Range]) -> Int64 { ranges.reduce(0) { $0 + $1.confirmed - $1.start } }
}
