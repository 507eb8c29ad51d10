public import Foundation
public import SystemPackage
public import TransferCore

/// One thing that a session moves, and the name that it gets: a file, a folder with all that is in it, or bytes from memory.
public struct TransferItem: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        case path(FilePath)
        case data(Data)
    }

    package var content: Content

    /// The remote name below the endpoint's folder; nil for the source's own last component. Bytes from memory have a name always.
    public var destination: RemotePath?

    /// What becomes of symbolic links, if the item is a folder.
    public var symbolicLinks = SymbolicLinkPolicy.follow

    /// The local file or folder; nil for bytes from memory. A relative path is taken from the working directory at the time of the enqueueing.
    public var source: FilePath? {
        switch content {
        case .path(let path): path
        case .data: nil
        }
    }

    /// Makes an item of a file or a folder. Which of both it is is found out when it is enqueued.
    ///
    /// A folder is read when its session first runs, and keeps its structure below its own name or the one given. What is in it by then is
    /// sent, in the order of the names' bytes where a folder has at most 16,384 entries. Folders without files leave nothing at the other end.
    /// Sockets, FIFOs and devices are left out, as ``ItemState/skipped`` items; a folder inside that can't be read is an item that fails, and
    /// the others go on.
    ///
    /// - Parameters:
    ///   - source: The file or folder.
    ///   - destination: The remote name; nil for the last component of `source`.
    ///   - symbolicLinks: What becomes of symbolic links inside of a folder.
    public init(_ source: FilePath, as destination: RemotePath? = nil, symbolicLinks: SymbolicLinkPolicy = .follow) {
        content = .path(source)
        self.destination = destination
        self.symbolicLinks = symbolicLinks
    }

    /// Makes an item of bytes in memory.
    ///
    /// When it is enqueued they are written to a file in the queue's storage folder, which only its owner can read. That file goes when the
    /// bytes have arrived, or the session is removed; so a completed item of this kind can't be sent again.
    ///
    /// - Parameters:
    ///   - data: The bytes.
    ///   - destination: The remote name.
    public static func data(_ data: Data, as destination: RemotePath) -> TransferItem {
        TransferItem(.data(data), as: destination)
    }

    private init(_ content: Content, as destination: RemotePath) {
        self.content = content
        self.destination = destination
    }
}
