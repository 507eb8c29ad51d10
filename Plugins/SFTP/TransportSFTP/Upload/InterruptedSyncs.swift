/// Counts the syncs of an upload during which the connection broke, and decides how later attempts sync.
///
/// The result of an interrupted sync is unknown. The server's operating system reports lost bytes only once, and may have reported them to
/// a process that ended with the connection. So the client sends the bytes again. If a sync takes longer than the connections last, every
/// attempt is interrupted. Later attempts therefore sync fewer bytes at a time. If these syncs are interrupted as well, the client
/// treats the server as one that can't sync.
package struct InterruptedSyncs: Hashable, Sendable {
    private var count: Int

    /// - Parameter stored: The value in a checkpoint, which may be damaged; nil for 0.
    package init(_ stored: Int? = nil) {
        count = min(max(0, stored ?? 0), Self.maximum)
    }

    /// The value for a checkpoint.
    package var stored: Int? { count > 0 ? count : nil }

    private static let maximum = 5

    var incremented: InterruptedSyncs { InterruptedSyncs(count + 1) }

    var decremented: InterruptedSyncs { InterruptedSyncs(count - 1) }

    /// The number of bytes after which a writer stops and syncs. If nil, the writer does not stop for syncs.
    package var step: Int64? {
        switch count {
        case 1: 2 << 20
        case 2: 512 << 10
        default: nil
        }
    }

    /// Whether to sync before the part file is complete.
    package var allowsSyncs: Bool { count < 3 }

    /// Whether checkpoints may confirm unsynced bytes. If a later sync fails, any of these bytes may be lost.
    var confirmsUnsyncedBytes: Bool { !allowsSyncs }

    /// Whether a sync of the complete part file was interrupted. The server may have lost bytes, and later syncs do not report the loss.
    var isUncertain: Bool { count > 3 }

    /// Whether to sync the complete part file. Most of its bytes may already be on the disk, so this sync may be fast.
    package var allowsFinalSync: Bool { count < Self.maximum }
}

extension SFTPFeatures {
    func after(_ interruptedSyncs: InterruptedSyncs) -> SFTPFeatures {
        guard !interruptedSyncs.allowsSyncs else { return self }
        var features = self
        features.extensions.removeAll { $0 == ProtocolExtension.fsync.rawValue }
        return features
    }
}
