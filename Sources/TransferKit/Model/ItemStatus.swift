public import Foundation
public import SystemPackage
public import TransferCore

/// The state of an item of a session.
public enum ItemState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Not finished: waiting for its turn, in flight, or waiting for a retry.
    case pending
    /// The file is at its destination: all bytes are confirmed, or the ``SessionOptions/overwrite`` policy kept an existing file.
    case completed
    /// Failed. The queue does not retry the item automatically. The item's error is the reason.
    case failed
    /// A skipped entry of a folder: a symbolic link that is not followed, or an entry that is neither a file nor a folder, such as a socket. The
    /// item's error describes the entry.
    ///
    /// The session still completes, and its statistics exclude the item.
    case skipped
}

/// A snapshot of one item.
public struct ItemStatus: Hashable, Sendable {
    /// The item's position in its session, from 0. It can change until the session's folders have been read. Some positions may be unused.
    public var position: Int64
    /// The local file or folder. For in-memory data, a stream or a copy (``TransferItem/keepsCopy``): the file in the storage folder that holds the
    /// bytes until the item is completed. For a form: its first local file. For a download: the local destination.
    public var source: FilePath
    /// The remote path.
    public var destination: RemotePath
    /// Whether the item is a whole folder that has not been read yet, or could not be read.
    public var isFolder = false
    /// The item's state.
    public var state: ItemState
    /// The size in bytes when the queue last checked it; 0 for a folder; nil while the size is unknown, for example before the server reports the
    /// size of a download.
    public var bytesTotal: Int64?
    /// The number of confirmed bytes.
    public var bytesDone: Int64
    /// The number of bytes that the network accepted or delivered, whether confirmed or not, at least ``bytesDone``.
    public var bytesSent: Int64
    /// The URL or address of the remote file, according to the transport; nil until the item is completed.
    public var remoteURL: String?
    /// The verified checksum of the content, as `algorithm:hex`; nil if no checksums were compared.
    public var checksum: String?
    /// When the other end will remove the bytes of an unfinished item; nil if the time is unknown.
    public var partialExpiresAt: Date?
    /// The server's response to the complete file, if the transport keeps it; nil until the item is completed.
    public var serverResponse: ServerResponse?
    /// Warnings about a completed item (``/TransferCore/TransferReceipt/warnings``); empty until the item is completed.
    public var warnings: [String]
    /// Why the item failed or was skipped, or why it last restarted; nil in all other cases.
    public var error: TransferError?
    /// The files of a form, in their order; empty for other items.
    public var formFiles: [FormFileStatus]

    /// Creates a snapshot, for example from the response of another process.
    package init(
        position: Int64, source: FilePath, destination: RemotePath, isFolder: Bool = false, state: ItemState, bytesTotal: Int64?,
        bytesDone: Int64, remoteURL: String? = nil, checksum: String? = nil, partialExpiresAt: Date? = nil,
        serverResponse: ServerResponse? = nil, warnings: [String] = [], error: TransferError? = nil, formFiles: [FormFileStatus] = []
    ) {
        self.position = position
        self.source = source
        self.destination = destination
        self.isFolder = isFolder
        self.state = state
        self.bytesTotal = bytesTotal
        self.bytesDone = bytesDone
        bytesSent = bytesDone
        self.remoteURL = remoteURL
        self.checksum = checksum
        self.partialExpiresAt = partialExpiresAt
        self.serverResponse = serverResponse
        self.warnings = warnings
        self.error = error
        self.formFiles = formFiles
    }

    /// Returns the number of transferred bytes of each file of a form.
    ///
    /// The queue sends the files of a form one after the other. In a session with one form, ``SessionStatistics/bytesSent`` therefore determines
    /// the progress of each file.
    ///
    /// - Parameter position: The number of transferred bytes of all files together.
    /// - Returns: The number of transferred bytes of each of the ``formFiles``.
    public func formProgress(at position: Int64) -> [Int64] {
        var rest = max(0, position)
        return formFiles.map { file in
            let count = min(rest, file.bytesTotal)
            rest -= count
            return count
        }
    }

    /// Decodes the server's response to the complete item, such as the JSON of a form handler.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - decoder: The decoder, for example with another strategy for dates.
    /// - Throws: A `TransferError` with the code `invalidResponse` if the item has no complete response, or if the response is not the JSON of such a
    ///   value.
    public func response<Value: Decodable>(as type: Value.Type, with decoder: JSONDecoder = JSONDecoder()) throws -> Value {
        guard let serverResponse else {
            throw TransferError(
                .permanent, .invalidResponse,
                state == .completed
                    ? "The transport kept no response to \(destination)."
                    : "\(destination) has no response, because it is not completed.")
        }
        return try serverResponse.decoded(as: type, with: decoder)
    }
}

/// A file of a form.
public struct FormFileStatus: Hashable, Sendable, Codable {
    /// The name of the form's field.
    public var field: String
    /// The name of the file for the server.
    public var name: String
    /// The local file; nil for in-memory data.
    public var source: FilePath? {
        get { sourceBytes.map { FilePath(bytes: $0) } }
        set { sourceBytes = newValue.map { Data($0.bytes) } }
    }
    /// The media type that the app set; nil if the transport chooses it.
    public var mediaType: String?
    /// The size in bytes when the form was enqueued.
    public var bytesTotal: Int64

    private var sourceBytes: Data?

    package init(field: String, name: String, source: FilePath?, mediaType: String?, bytesTotal: Int64) {
        self.field = field
        self.name = name
        self.mediaType = mediaType
        self.bytesTotal = bytesTotal
        self.source = source
    }
}
