package import Foundation
package import TransferCore

/// The kind of an item. The raw values are stored.
package enum ItemKind: String, Sendable, Codable {
    case file
    case folder
    /// Data from the app's memory, or a copy of a local file, kept in a file of the ``Spool``.
    case blob
    /// Data that an app produces during the transfer, passed through a file of the ``Spool``.
    case stream
    /// A form. One file of the ``Spool`` contains the form's in-memory data.
    case form
    /// A remote file. Its source is the local name below the session's folder.
    case download
    /// A remote folder. Its source is the local name below the session's folder.
    case remoteFolder

    /// Whether the item must be expanded before its files are known.
    package var isFolder: Bool { self == .folder || self == .remoteFolder }

    /// Whether the item's source is the name of a file in the ``Spool``.
    package var isSpooled: Bool { self == .blob || self == .stream || self == .form }

    package var isDownload: Bool { self == .download || self == .remoteFolder }

    /// The remote path of an item of this kind, from the stored bytes.
    func remotePath(_ bytes: [UInt8]) throws(TransferError) -> RemotePath {
        self == .remoteFolder ? try .folder(bytes: bytes) : try RemotePath(bytes: bytes)
    }
}

/// The totals of several items.
package struct ItemFigures: Sendable, Equatable {
    package var files: Int
    /// The total size of the items whose size is known, in bytes.
    package var bytes: Int64
    /// The number of items whose size is unknown.
    package var unsized: Int

    package init(_ items: [ItemDraft]) {
        files = items.count
        bytes = items.reduce(0) { $0.addingSaturated($1.size) }
        unsized = items.count { $0.isUnsized }
    }
}

/// An item of a ``SessionDraft``. Names are stored as bytes, because file names need not be UTF-8.
package struct ItemDraft: Sendable, Codable, Equatable {
    package var kind: ItemKind
    /// The local path, relative to the base folder unless it begins with a slash. For a download or remote folder, the local name below the
    /// session's folder. For a blob, a stream or a form, the name of its file in the spool. A form without data has no such file.
    package var source: Data
    package var destination: Data
    package var size: Int64
    /// Whether the size is not known yet. An unknown size is stored as 0.
    package var isUnsized = false
    /// For a folder, the policy for the symbolic links in the folder. For a file, `skip` if no component of its path may be a link when the
    /// file is opened (except in the base folder's own path); otherwise `follow`.
    package var symbolicLinks: SymbolicLinkPolicy
    /// The URL of an existing upload for the file.
    package var uploadCapability: Capability?
    /// The URL at which the file's upload is created; nil for the creation URL of the session.
    package var creationCapability: Capability?
    /// The parts of a form; nil for other items.
    package var form: FormContent?

    package init(
        kind: ItemKind = .file, source: Data, destination: Data, size: Int64, symbolicLinks: SymbolicLinkPolicy = .follow,
        uploadCapability: Capability? = nil, creationCapability: Capability? = nil, isUnsized: Bool = false, form: FormContent? = nil
    ) {
        self.creationCapability = creationCapability
        self.form = form
        self.isUnsized = isUnsized
        self.uploadCapability = uploadCapability
        self.kind = kind
        self.source = source
        self.destination = destination
        self.size = size
        self.symbolicLinks = symbolicLinks
    }

    /// The policy to store with a file or a form; nil if links are followed.
    var filePolicy: String? { (kind == .file || kind == .form) && symbolicLinks != .follow ? symbolicLinks.rawValue : nil }

    /// Whether the item has data from the app's memory, or a copy of a local file, in a file of the ``Spool``.
    package var hasData: Bool { kind == .blob || form?.hasData == true }
}
