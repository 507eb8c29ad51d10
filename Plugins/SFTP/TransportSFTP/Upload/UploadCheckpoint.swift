import Foundation
package import TransferCore

/// The data for resuming an upload or removing its part file.
package struct UploadCheckpoint: Codable, Hashable, Sendable {
    package enum Stage: String, Codable, Sendable {
        /// The part file is being written.
        case writing
        /// The part file is complete and is being renamed. The file can have either name, because the response to the rename may get lost.
        case placing
    }

    /// A range of the file, whose bytes one writer sends in order.
    package struct Range: Codable, Hashable, Sendable {
        package var start: Int64
        package var end: Int64
        /// The server has all bytes of the range up to this position.
        package var confirmed: Int64
        /// The acknowledged position of this range, like ``UploadCheckpoint/acknowledged``.
        package var acknowledged: Int64?

        package init(start: Int64, end: Int64, confirmed: Int64, acknowledged: Int64? = nil) {
            (self.start, self.end, self.confirmed, self.acknowledged) = (start, end, confirmed, acknowledged)
        }

        fileprivate var isSound: Bool {
            0 <= start && start <= confirmed && confirmed <= end && (acknowledged.map { (confirmed...end).contains($0) } ?? true)
        }

        fileprivate var synced: Range { Range(start: start, end: end, confirmed: acknowledged ?? confirmed) }
    }

    /// The path of the part file, or the final path if there is no part file. Paths need not be UTF-8.
    var part: Data
    /// The final path. With the overwrite policy `rename`, it may contain a number.
    var final: Data
    var stage: Stage
    /// The checksum of the complete part file, for the receipt.
    var checksum: String?
    /// The ranges of a large file, in order and without gaps; nil if the file is sent from start to end.
    package var ranges: [Range]?
    /// For a file without ranges, the end of the bytes that the server acknowledged, but did not sync, before an attempt ended. Unless the
    /// server crashed, it still has these bytes. nil if the server acknowledged no bytes after the confirmed position.
    package var acknowledged: Int64?
    /// The number of interrupted syncs; see ``InterruptedSyncs``.
    package var interruptedSyncs: Int?
    /// The path of another part file of this upload, to remove with ``part``: the target of an unfinished copy, or the source of a finished one.
    var otherPart: Data?
    /// The permissions to set before the part file is renamed; nil to keep its permissions.
    var mode: UInt32?
    /// nil if no file had the final name before the upload.
    var existing: FileVersion?
    /// Whether the checkpoint was saved before the part file was created; nil for false.
    var precedesPart: Bool?

    package init(part: [UInt8], final: [UInt8], stage: Stage, checksum: String? = nil) {
        self.part = Data(part)
        self.final = Data(final)
        self.stage = stage
        self.checksum = checksum
    }

    /// Returns nil if the checkpoint is not from an upload by this transport.
    package init?(_ checkpoint: Checkpoint) {
        guard let stored = try? JSONDecoder().decode(UploadCheckpoint.self, from: checkpoint.data) else { return nil }
        self = stored
    }

    func encoded(confirmed: Int64) throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(self), confirmed: confirmed)
    }

    /// Sorts ranges, and merges each complete range with the next one.
    static func joined(_ ranges: [Range]) -> [Range] {
        ranges.sorted { $0.start < $1.start }.reduce(into: []) { joined, range in
            guard let last = joined.last, last.confirmed == last.end else { return joined.append(range) }
            joined[joined.count - 1] = Range(
                start: last.start, end: range.end, confirmed: range.confirmed, acknowledged: range.acknowledged)
        }
    }

    /// nil if the upload has no part file, or had none when the checkpoint was saved.
    var existingPartFile: [UInt8]? { part == final || precedesPart == true ? nil : [UInt8](part) }

    // MARK: Positions

    /// Returns whether all positions are valid. If there are ranges, they must cover the whole file without gaps or overlaps. Call this method
    /// before you use the numbers of a stored checkpoint.
    ///
    /// - Parameters:
    ///   - confirmed: The number of bytes that the checkpoint confirms.
    ///   - size: The file's size in bytes; nil for a growing source.
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

    /// Returns the minimum size in bytes of a part file that has all confirmed bytes.
    func neededSize(_ confirmed: Int64) -> Int64 {
        // With ranges, the confirmed position of the last range that has confirmed bytes.
        ranges.map { $0.reduce(0) { $1.confirmed > $1.start ? $1.confirmed : $0 } } ?? confirmed
    }

    /// Returns the checkpoint, and its number of confirmed bytes, for the case that a sync of the acknowledged bytes succeeds; nil if no
    /// acknowledged byte is unconfirmed.
    func synced(_ confirmed: Int64) -> (checkpoint: UploadCheckpoint, confirmed: Int64)? {
        var checkpoint = self
        checkpoint.ranges = ranges?.map(\.synced)
        checkpoint.acknowledged = nil
        let more = checkpoint.ranges.map(Self.sum) ?? max(confirmed, acknowledged ?? 0)
        return more > confirmed ? (checkpoint, more) : nil
    }

    var withoutUnsynced: UploadCheckpoint {
        var checkpoint = self
        checkpoint.ranges = ranges?.map { Range(start: $0.start, end: $0.end, confirmed: $0.confirmed) }
        checkpoint.acknowledged = nil
        return checkpoint
    }

    func unsynced(_ confirmed: Int64) -> [Swift.Range<Int64>] {
        let all = ranges?.map { $0.confirmed..<($0.acknowledged ?? $0.confirmed) } ?? [confirmed..<max(confirmed, acknowledged ?? 0)]
        return all.filter { !$0.isEmpty }
    }

    static func sum(_ ranges: [Range]) -> Int64 {
        // Without the parentheses, an intermediate result could overflow.
        ranges.reduce(0) { $0 + ($1.confirmed - $1.start) }
    }
}

/// Distinguishes versions of a file on a server. The size and the time are usually different after a replacement.
struct FileVersion: Codable, Hashable, Sendable {
    let size: UInt64?
    /// In seconds since 1970.
    let modificationTime: UInt32?

    init(_ attributes: FileAttributes) { (size, modificationTime) = (attributes.size, attributes.modificationTime) }
}
