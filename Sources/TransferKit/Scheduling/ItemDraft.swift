package import Foundation

/// What an item's source is; the raw values are stored.
package enum ItemKind: String, Sendable, Codable {
    case file
    case folder
    /// Bytes that an app handed over, in a file of the ``Spool``.
    case blob
}

/// An item of a ``SessionDraft``. Names are bytes.
package struct ItemDraft: Sendable, Codable, Equatable {
    package var kind: ItemKind
    /// A path, relative to the base folder unless it begins with a slash; of a blob, its name in the spool.
    package var source: Data
    package var destination: Data
    package var size: Int64
    package var symbolicLinks: SymbolicLinkPolicy

    package init(
        kind: ItemKind = .file, source: Data, destination: Data, size: Int64, symbolicLinks: SymbolicLinkPolicy = .follow
    ) {
        self.kind = kind
        self.source = source
        self.destination = destination
        self.size = size
        self.symbolicLinks = symbolicLinks
    }
}
