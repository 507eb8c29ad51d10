import Foundation
package import TransferCore

/// What an upload needs to go on later, and to be removed.
package struct UploadCheckpoint: Codable, Hashable, Sendable {
    package enum Stage: String, Codable, Sendable {
        /// The part is being written.
        case writing
        /// The part is complete, and gets its name: from now on, either name may be the file's.
        case placing
    }

    /// Bytes of the file that are sent one after the other, while others are, too.
    package struct Range: Codable, Hashable, Sendable {
        package var start: Int64
        package var end: Int64
        /// Up to where the server has them, from the start.
        package var confirmed: Int64

        package init(start: Int64, end: Int64, confirmed: Int64) {
            (self.start, self.end, self.confirmed) = (start, end, confirmed)
        }
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
            joined[joined.count - 1] = Range(start: last.start, end: range.end, confirmed: range.confirmed)
        }
    }

    /// Whether the ranges are all of a file, each once.
    package func covers(_ size: Int64) -> Bool {
        guard let ranges else { return true }
        var end: Int64 = 0
        for range in ranges {
            guard range.start == end, range.start <= range.confirmed, range.confirmed <= range.end else { return false }
            end = range.end
        }
        return end == size
    }
}
