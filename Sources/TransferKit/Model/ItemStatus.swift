public import Foundation
public import SystemPackage
public import TransferCore

/// Where one item of a session is in its life.
public enum ItemState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Not finished: waiting for its turn, in flight, or waiting to be tried again.
    case pending
    /// All bytes are confirmed at the destination.
    case completed
    /// Given up; the item's error says why.
    case failed
    /// Something in a folder that is no file and no folder, such as a socket, and was left out; the item's error says what it is.
    ///
    /// The session completes nevertheless, and its figures do not count it.
    case skipped
}

/// A snapshot of one item.
public struct ItemStatus: Hashable, Sendable {
    /// The item's position in its session, from 0. Final once the session's folders were read; numbers may be left out.
    public var position: Int64
    /// The local file or folder; for bytes from memory, the file that they are kept in until they have arrived; of a download, where it goes.
    public var source: FilePath
    /// The remote name.
    public var destination: RemotePath
    /// Whether it is a folder as a whole: one that was not read yet, or could not be.
    public var isFolder = false
    /// Where it is in its life.
    public var state: ItemState
    /// The size in bytes, when the queue last looked; 0 for a folder. Nil while it is not known: of a download until the server has told it.
    public var bytesTotal: Int64?
    /// Confirmed bytes.
    public var bytesDone: Int64
    /// Where the file is now, as the transport says; nil until it is completed.
    public var remoteURL: String?
    /// The checksum both ends agreed on; nil if none was compared.
    public var checksum: String?
    /// When the other end means to remove what it has of an item that is not completed; nil if it did not say.
    public var partialExpiresAt: Date?
    /// What the server answered when it had the file, where the transport keeps that; nil until it is completed.
    public var answer: ServerAnswer?
    /// What somebody should know of it although it is completed, as ``TransferCore/TransferReceipt/warnings`` says; empty until then.
    public var warnings: [String]
    /// Why it failed or was left out, or why its last attempt failed.
    public var error: TransferError?

    /// Makes a snapshot, also of what another process told.
    package init(
        position: Int64, source: FilePath, destination: RemotePath, isFolder: Bool = false, state: ItemState, bytesTotal: Int64?,
        bytesDone: Int64, remoteURL: String? = nil, checksum: String? = nil, partialExpiresAt: Date? = nil,
        answer: ServerAnswer? = nil, warnings: [String] = [], error: TransferError? = nil
    ) {
        self.position = position
        self.source = source
        self.destination = destination
        self.isFolder = isFolder
        self.state = state
        self.bytesTotal = bytesTotal
        self.bytesDone = bytesDone
        self.remoteURL = remoteURL
        self.checksum = checksum
        self.partialExpiresAt = partialExpiresAt
        self.answer = answer
        self.warnings = warnings
        self.error = error
    }
}
