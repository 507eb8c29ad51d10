import Foundation
import TransferCore

/// What an upload needs to go on later, and to be removed.
struct UploadCheckpoint: Codable, Hashable, Sendable {
    enum Stage: String, Codable, Sendable {
        /// The part is being written.
        case writing
        /// The part is complete, and gets its name: from now on, either name may be the file's.
        case placing
    }

    /// The part's path, whose bytes need not be UTF-8.
    var part: Data
    /// The path that the part gets in the end.
    var final: Data
    var stage: Stage
    /// What the complete part was found to have, for the receipt.
    var checksum: String?

    init(part: [UInt8], final: [UInt8], stage: Stage, checksum: String? = nil) {
        self.part = Data(part)
        self.final = Data(final)
        self.stage = stage
        self.checksum = checksum
    }

    /// Nil if it is none of this transport.
    init?(_ checkpoint: Checkpoint) {
        guard let stored = try? JSONDecoder().decode(UploadCheckpoint.self, from: checkpoint.data) else { return nil }
        self = stored
    }

    func encoded(confirmed: Int64) throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(self), confirmed: confirmed)
    }
}
