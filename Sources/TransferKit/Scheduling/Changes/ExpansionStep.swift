package import Foundation
package import TransferCore

/// A step that expands a session's items into the session's manifest, the ordered list of its files. In each case, `item` is the sequence
/// number of the item's row in the table `item`.
///
/// The table `item` lists the first unread folder and all items after it. A step changes the manifest and this list in one transaction. An
/// interruption can leave a folder only partly in the manifest. In a local folder, the next run resumes after the rows of the last
/// ``read(item:_:place:)``. In a remote folder, the next run deletes the rows added after the last ``listed(item:_:next:)``, and continues
/// with the folder `next`.
package enum ExpansionStep: Sendable, Codable, Equatable {
    /// Records that the run starts to read the first folder in the list of waiting items. Until ``finish(item:_:)``, all new rows come from
    /// this folder.
    case begin(item: Int64)
    /// Deletes rows that the statistics do not include, after an interruption or a failed listing of a remote folder: at most `limit` file
    /// rows and at most `limit` folder rows.
    case discard(item: Int64, limit: Int)
    /// Adds rows of a remote folder to the manifest. The session's statistics do not include these rows until ``listed(item:_:next:)``.
    case add(item: Int64, ManifestBatch)
    /// Adds rows of a local folder to the manifest, and includes them in the session's statistics. After an interruption, the next run
    /// resumes reading at `place`.
    case read(item: Int64, ManifestBatch, place: [FolderResumePoint])
    /// Records that one folder is finished: the item's remote folder, or one of its subfolders. The manifest contains all entries of the
    /// folder, or a failed entry that stands for the folder. The next rows come from the folder with the number `next`, or, if this folder
    /// does not exist, from the folder with the next higher number.
    case listed(item: Int64, ManifestTotals, next: Int64)
    /// Records that the item's whole folder is in the manifest, and removes the item from the list of waiting items.
    case finish(item: Int64, ManifestTotals)
    /// Moves the files before the first folder, but at most `limit` files, from the list of waiting items to the manifest.
    case takeFiles(limit: Int)
    /// Several steps that one transaction stores.
    case group([ExpansionStep])

    /// The steps of a group, or only the step if it is not a group.
    var singleSteps: [ExpansionStep] {
        if case .group(let steps) = self { steps.flatMap(\.singleSteps) } else { [self] }
    }

    var changesFigures: Bool {
        singleSteps.contains { step in
            switch step {
            case .read, .listed, .finish: true
            default: false
            }
        }
    }
}

/// The numbers of the next file row and of the next folder row that an expansion adds to the manifest.
package struct ManifestStart: Sendable, Codable, Equatable {
    package var position: Int64
    package var directory: Int64
}

/// A folder that an expansion is reading, and the last entry whose rows are in the manifest. An expansion reads the entries of a folder in
/// the byte order of their names. The *place* at which an interrupted expansion resumes is a list of these values, from the outermost
/// folder to the innermost.
package struct FolderResumePoint: Sendable, Codable, Equatable {
    /// The number of the folder in the manifest.
    package var number: Int64
    /// The name of the last entry; nil if the manifest contains no entry of the folder. If the expansion is reading a subfolder of the
    /// folder, this is the subfolder's name.
    package var last: Data?
    /// The folder's inode number; nil if an earlier version of TransferKit stored this resume point.
    package var inode: UInt64?
}

/// Rows to add to the manifest, in order.
package struct ManifestBatch: Sendable, Codable, Equatable {
    package var directories: [ManifestDirectory] = []
    package var entries: [ManifestEntry] = []

    package init() {}

    package var count: Int { directories.count + entries.count }

    package var totals: ManifestTotals {
        entries.reduce(into: ManifestTotals()) { totals, entry in
            guard entry.state != .skipped else { return }
            totals += ManifestTotals(
                files: 1, failed: entry.state == .failed ? 1 : 0, bytes: entry.size, unsized: entry.isUnsized ? 1 : 0)
        }
    }
}

/// A folder that contains entries of the manifest. The path of an entry is the folder's path followed by the entry's name.
package struct ManifestDirectory: Sendable, Codable, Equatable {
    package var number: Int64
    /// The number of the parent folder; nil if `source` and `destination` are complete paths.
    package var parent: Int64?
    /// The local path; for a folder with a parent, only the folder's name.
    package var source: Data
    /// The remote path; empty if there is a parent.
    package var destination: Data
}

/// A file of the manifest, or another entry of a folder. Other entries are reported, but not transferred.
package struct ManifestEntry: Sendable, Codable, Equatable {
    package var position: Int64
    /// The number of the folder that contains the entry; nil if `source` and `destination` are complete paths.
    package var directory: Int64?
    package var kind: ItemKind
    package var source: Data
    package var destination: Data
    package var size: Int64
    /// Whether the size is not known yet. An unknown size is stored as 0.
    package var isUnsized = false
    package var state: ItemState
    package var error: TransferError?
    /// Whether the entry is a stand-in for a file or folder whose name can't be stored. The name of a stand-in refers to no file, so the entry
    /// fails permanently.
    package var isStandIn = false
    /// The policy for symbolic links; nil if the entry needs no policy. A folder that could not be read needs the policy for a retry. A
    /// file needs the policy unless the policy is to follow all links.
    package var symbolicLinks: SymbolicLinkPolicy?
    /// For a folder that could not be read completely, the place at which a retry resumes. Nil if the manifest contains no entry of the
    /// folder, and for other entries.
    package var place: [FolderResumePoint]?
}

/// The totals of a folder's entries, without skipped entries.
package struct ManifestTotals: Sendable, Codable, Equatable {
    package var files: Int64 = 0
    /// The number of ``files`` that can't be transferred.
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
