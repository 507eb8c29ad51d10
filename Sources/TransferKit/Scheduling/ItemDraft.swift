package import Foundation
package import TransferCore

/// What an item's source is; the raw values are stored.
package enum ItemKind: String, Sendable, Codable {
    case file
    case folder
    /// Bytes that an app handed over, in a file of the ``Spool``.
    case blob
    /// Bytes that an app produces while they are sent, through a file of the ``Spool``.
    case stream
    /// A remote file; its source is the local name below the session's folder.
    case download
    /// A remote folder; its source is the local name below the session's folder.
    case remoteFolder

    /// Whether it is to be read before its files are known.
    package var isFolder: Bool { self == .folder || self == .remoteFolder }

    /// Whether it comes from the other end.
    package var isReceived: Bool { self == .download || self == .remoteFolder }
}

/// What items come to together.
package struct ItemFigures: Sendable, Equatable {
    package var files: Int
    /// Of those whose size is known.
    package var bytes: Int64
    package var unsized: Int

    package init(_ items: [ItemDraft]) {
        files = items.count
        bytes = items.reduce(0) { $0.addingSaturated($1.size) }
        unsized = items.count { $0.isUnsized }
    }
}

/// An item of a ``SessionDraft``. Names are bytes.
package struct ItemDraft: Sendable, Codable, Equatable {
    package var kind: ItemKind
    /// A path, relative to the base folder unless it begins with a slash; of a blob or a stream, its name in the spool.
    package var source: Data
    package var destination: Data
    package var size: Int64
    /// Whether the size is not known yet, and stored as 0.
    package var isUnsized = false
    package var symbolicLinks: SymbolicLinkPolicy
    /// Where the file already has a place at the server.
    package var uploadPlace: Capability?

    package init(
        kind: ItemKind = .file, source: Data, destination: Data, size: Int64, symbolicLinks: SymbolicLinkPolicy = .follow,
        uploadPlace: Capability? = nil, isUnsized: Bool = false
    ) {
        self.isUnsized = isUnsized
        self.uploadPlace = uploadPlace
        self.kind = kind
        self.source = source
        self.destination = destination
        self.size = size
        self.symbolicLinks = symbolicLinks
    }
}
