import Foundation
import TransferCore

/// Identifies a version of a remote file, as far as SFTP allows. A download's checkpoint stores this value.
struct RemoteVersion: Codable, Hashable, Sendable {
    /// The size in bytes.
    var size: Int64
    /// The modification time in seconds since 1970; nil if the server does not report it.
    var modificationTime: UInt32?

    /// Creates a version from attributes; nil if the server reports no size, or an implausible size.
    init?(_ attributes: FileAttributes) {
        guard let size = attributes.size.flatMap({ $0 <= FileAttributes.largestSize ? Int64($0) : nil }) else { return nil }
        self.size = size
        modificationTime = attributes.modificationTime
    }

    /// Reads the version from a checkpoint; nil if the checkpoint is not from a download by this transport, or confirms more bytes than the
    /// file had.
    init?(_ checkpoint: Checkpoint) {
        guard let stored = try? JSONDecoder().decode(RemoteVersion.self, from: checkpoint.data),
            (0...Int64(FileAttributes.largestSize)).contains(stored.size), (0...stored.size).contains(checkpoint.confirmed)
        else { return nil }
        self = stored
    }

    func checkpoint(at position: Int64) throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(self), confirmed: position)
    }

    /// The modification time in nanoseconds since 1970.
    var modificationNanoseconds: Int64? { modificationTime.map { Int64($0) * 1_000_000_000 } }
}
