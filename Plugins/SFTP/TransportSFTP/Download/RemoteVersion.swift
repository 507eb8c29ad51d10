import Foundation
import TransferCore

/// What tells one version of a remote file from another, as far as SFTP lets: what a checkpoint holds of a download.
struct RemoteVersion: Codable, Hashable, Sendable {
    /// In bytes.
    var size: Int64
    /// In seconds since 1970; nil if the server does not say.
    var modificationTime: UInt32?

    /// Nil if the server does not tell the size.
    init?(_ attributes: FileAttributes) {
        guard let size = attributes.size.flatMap({ Int64(exactly: $0) }) else { return nil }
        self.size = size
        modificationTime = attributes.modificationTime
    }

    /// Nil if it is none of this transport.
    init?(_ checkpoint: Checkpoint) {
        guard let stored = try? JSONDecoder().decode(RemoteVersion.self, from: checkpoint.data) else { return nil }
        self = stored
    }

    func checkpoint(at position: Int64) throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(self), confirmed: position)
    }

    /// In nanoseconds since 1970.
    var modificationNanoseconds: Int64? { modificationTime.map { Int64($0) * 1_000_000_000 } }
}
