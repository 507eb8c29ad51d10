package import Foundation
package import TransferCore

/// One step of the expansion of a session's items into its manifest, which is the ordered list of files.
///
/// Items after a folder that has not been read yet wait in a separate list. A step changes the manifest and this list in one transaction.
/// If the process ends between two steps, a folder may be half read; the next run deletes the folder's rows and reads it again. In a remote
/// folder, only the subfolders after the last ``listed(item:_:next:)`` are listed again.
package enum ExpansionStep: Sendable, Codable, Equatable {
    /// Starts the reading of the first folder in the list. All further rows come from this folder.
    case begin(item: Int64)
    /// Deletes at most `limit` rows that an earlier reading of the folder added.
    case discard(item: Int64, limit: Int)
    /// Adds rows that were read from a folder.
    case add(item: Int64, ManifestBatch)
    /// Deletes at most `limit` rows of a subfolder that could not be read completely: the manifest contains a subfolder completely or not
    /// at all.
    case withdraw(ManifestStart, limit: Int)
    /// Records that one subfolder of a remote folder is in the manifest with its entries. Further rows belong to the subfolder with the
    /// number `next`, or to the first subfolder after it.
    case listed(item: Int64, ManifestTotals, next: Int64)
    /// Records that the whole folder is in the manifest.
    case finish(item: Int64, ManifestTotals)
    /// Moves at most `limit` files at the start of the list to the manifest.
    case takeFiles(limit: Int)
    /// Steps of one transaction.
    case group([ExpansionStep])

    /// The single steps, in order.
    var parts: [ExpansionStep] {
        if case .group(let steps) = self { steps.flatMap(\.parts) } else { [self] }
    }

    /// Whether the step changes the statistics of its session.
    var changesFigures: Bool {
        parts.contains { step in
            switch step {
            case .listed, .finish: true
            default: false
            }
        }
    }
}

/// The numbers of a folder's first rows in the manifest.
package struct ManifestStart: Sendable, Codable, Equatable {
    package var position: Int64
    package var directory: Int64
}

/// Rows for the manifest, in order.
package struct ManifestBatch: Sendable, Codable, Equatable {
    package var directories: [ManifestDirectory] = []
    package var entries: [ManifestEntry] = []

    package init() {}

    package var count: Int { directories.count + entries.count }
}

/// A folder that contains entries of the manifest. The path of an entry is the folder's path followed by the entry's name.
package struct ManifestDirectory: Sendable, Codable, Equatable {
    package var number: Int64
    /// The parent folder; nil if source and destination are complete paths.
    package var parent: Int64?
    package var source: Data
    /// The name at the destination; empty if there is a parent.
    package var destination: Data
}

/// A file of the manifest, or another folder entry that must be reported.
package struct ManifestEntry: Sendable, Codable, Equatable {
    package var position: Int64
    /// The folder of the entry; nil if source and destination are complete paths.
    package var directory: Int64?
    package var kind: ItemKind
    package var source: Data
    package var destination: Data
    package var size: Int64
    /// Whether the size is not known yet, and stored as 0.
    package var isUnsized = false
    package var state: ItemState
    package var error: TransferError?
    /// Whether the entry replaces an entry whose name can't be stored. The replacement name refers to no file, so the entry fails
    /// permanently.
    package var isStandIn = false
    /// The policy of a folder that could not be read, for a retry, or of a file in a folder that does not follow all links.
    package var symbolicLinks: SymbolicLinkPolicy?
}

/// The totals of a folder that was read, without skipped entries.
package struct ManifestTotals: Sendable, Codable, Equatable {
    package var files: Int64 = 0
    /// The number of ``files`` that can't be sent.
    package var failed: Int64 = 0
    package var bytes: Int64 = 0
    /// The number of ``files`` with an unknown size.
    package var unsized: Int64 = 0

    package init(files: Int64 = 0, failed: Int64 = 0, bytes: Int64 = 0, unsized: Int64 = 0) {
        self.files = files
        self.failed = failed
        self.bytes = bytes
        self.unsized = unsized
    }

    package static func += (left: inout ManifestTotals, right: ManifestTotals) {
        left.files.addSaturated(right.files)
        left.failed.addSaturated(right.failed)
        left.bytes.addSaturated(right.bytes)
        left.unsized.addSaturated(right.unsized)
    }
}
