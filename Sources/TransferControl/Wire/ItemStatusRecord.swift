import Foundation
import SystemPackage
import TransferCore
import TransferKit

/// The encodable form of an `ItemStatus`. Names are encoded as bytes, because they need not be valid UTF-8.
struct ItemStatusRecord: Codable, Sendable {
    var position: Int64
    var source: Data
    var destination: Data
    var isFolder: Bool
    var state: ItemState
    var bytesTotal: Int64?
    var bytesDone: Int64
    /// Nil if the queue's owner is an older version that does not report sent bytes.
    var bytesSent: Int64?
    var remoteURL: String?
    var checksum: String?
    var partialExpiresAt: Date?
    /// The server's response to the upload of the item.
    var answer: ServerResponse?
    /// Nil if the queue's owner is an older version that does not report warnings.
    var warnings: [String]?
    var error: TransferError?
    /// Nil if the item is not a form.
    var formFiles: [FormFileStatus]?

    init(_ item: ItemStatus) {
        position = item.position
        source = Data(item.source.bytes)
        destination = Data(item.destination.bytes)
        isFolder = item.isFolder
        state = item.state
        bytesTotal = item.bytesTotal
        bytesDone = item.bytesDone
        bytesSent = item.bytesSent
        remoteURL = item.remoteURL
        checksum = item.checksum
        partialExpiresAt = item.partialExpiresAt
        answer = item.serverResponse
        warnings = item.warnings
        error = item.error
        formFiles = item.formFiles.isEmpty ? nil : item.formFiles
    }

    var status: ItemStatus {
        get throws {
            var item = ItemStatus(
                position: position, source: FilePath(bytes: source),
                destination: try isFolder ? .folder(bytes: destination) : RemotePath(bytes: destination), isFolder: isFolder,
                state: state, bytesTotal: bytesTotal, bytesDone: bytesDone, remoteURL: remoteURL, checksum: checksum,
                partialExpiresAt: partialExpiresAt, serverResponse: answer, warnings: warnings ?? [], error: error,
                formFiles: formFiles ?? [])
            item.bytesSent = bytesSent ?? bytesDone
            return item
        }
    }
}
