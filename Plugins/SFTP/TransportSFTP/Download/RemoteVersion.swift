import Foundation
import TransferCore

/// Distinguishes versions of a remote file, as far as SFTP allows; stored in a download's checkpoint.
struct RemoteVersion: Codable, Hashable, Sendable {
    /// In bytes.
    var size: Int64
    /// In seconds since 1970; nil if the server does not report it.
    var modificationTime: UInt32?

    /// Nil if the server reports no size, or an implausible one.
    init?(_ attributes: FileAttributes) {
        guard let size = attributes.size.flatMap({ $0 <= FileAttributes.largestSize ? Int64($0) : nil }) else { return nil }
        self.size = size
        modificationTime = attributes.modificationTime
    }

    /// Nil if the checkpoint is not from a download by this transport, or confirms more than the file had.
    init?(_ checkpoint: Checkpoint) {
        guard let stored = try? JSONDecoder().decode(RemoteVersion.self, from: checkpoint.data),
            (0...Int64(FileAttributes.largestSize)).contains(stored.size), (0...stored.size).contains(checkpoint.confirmed)
        else { return nil }
        self = stored
    }

    func checkpoint(at position: Int64) throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(self), confirmed: position)
    }

    /// In nanoseconds since 1970.
    var modificationNanoseconds: Int64? { modificationTime.map { Int64($0) * 1_000_000_000 } }
}
