package import Foundation
package import TransferCore

/// One step on the way from a session's items to its manifest, the list of files in the order in which they go.
///
/// Items that come after a folder which was not read yet wait in a list of their own. A step changes the manifest and that list in one
/// transaction; a process that ends between two steps leaves a folder half read, whose rows the next run takes out before it reads it again. Of a
/// remote folder, those are the ones in it that come after the last ``listed(item:_:next:)``; those before are not listed again.
package enum ExpansionStep: Sendable, Codable, Equatable {
    /// The folder at the head of the list is being read: all rows from here on come from it.
    case begin(item: Int64)
    /// Takes out so many rows at most of what an earlier reading left of the folder.
    case discard(item: Int64, limit: Int)
    /// Adds to what the reading of a folder found.
    case add(item: Int64, ManifestBatch)
    /// Takes out so many rows at most of a folder within it that could not be read to its end: it is in the manifest as a whole or not at all.
    case withdraw(ManifestStart, limit: Int)
    /// One folder of a remote one is in the manifest with its entries; what comes from here on belongs to the one with the number `next`, or to
    /// the first one after it.
    case listed(item: Int64, ManifestTotals, next: Int64)
    /// The folder is in the manifest as a whole.
    case finish(item: Int64, ManifestTotals)
    /// Moves the files at the head of the list to the manifest, at most so many.
    case takeFiles(limit: Int)
    /// Steps that are taken together.
    case group([ExpansionStep])

    /// The single steps in their order.
    var parts: [ExpansionStep] {
        if case .group(let steps) = self { steps.flatMap(\.parts) } else { [self] }
    }

    /// Whether it changes the figures of its session.
    var changesFigures: Bool {
        parts.contains { step in
            switch step {
            case .listed, .finish: true
            default: false
            }
        }
    }
}

/// Where the rows of a folder begin in the manifest.
package struct ManifestStart: Sendable, Codable, Equatable {
    package var position: Int64
    package var directory: Int64
}

/// Rows for the manifest, in their order.
package struct ManifestBatch: Sendable, Codable, Equatable {
    package var directories: [ManifestDirectory] = []
    package var entries: [ManifestEntry] = []

    package init() {}

    package var count: Int { directories.count + entries.count }
}

/// A folder that holds entries of the manifest. Their paths are made of its own and their names.
package struct ManifestDirectory: Sendable, Codable, Equatable {
    package var number: Int64
    /// The folder that it is in; nil for one whose source and destination are whole.
    package var parent: Int64?
    package var source: Data
    /// Empty for one that has a parent.
    package var destination: Data
}

/// A file of the manifest, or something else in a folder that has to be told of.
package struct ManifestEntry: Sendable, Codable, Equatable {
    package var position: Int64
    /// The folder that it is in; nil if source and destination are whole.
    package var directory: Int64?
    package var kind: ItemKind
    package var source: Data
    package var destination: Data
    package var size: Int64
    /// Whether the size is not known yet, and stored as 0.
    package var isUnsized = false
    package var state: ItemState
    package var error: TransferError?
    /// Whether it stands for something whose name can't be stored, so that its own name is nobody's: it fails for good.
    package var isStandIn = false
    /// Of a folder that could not be read, so that it can be tried again; of a file in a folder whose links are not all followed.
    package var symbolicLinks: SymbolicLinkPolicy?
}

/// What the reading of a folder found; what was skipped does not count.
package struct ManifestTotals: Sendable, Codable, Equatable {
    package var files: Int64 = 0
    /// How many of ``files`` can't be sent.
    package var failed: Int64 = 0
    package var bytes: Int64 = 0
    /// How many of ``files`` have a size that is not known yet.
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
