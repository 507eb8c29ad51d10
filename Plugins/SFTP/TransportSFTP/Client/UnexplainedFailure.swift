import Locking
import TransferCore

/// The server failed at a file without a reason, and what it has there shows none.
struct UnexplainedFailure: Error {
    let error: TransferError
}

/// How often the server failed at each file in a row without a reason: it may pass, and it may be this file that the server can't take, which
/// says nothing about the server.
final class UnexplainedFailures: Sendable {
    private struct File: Hashable {
        let transferID: String
        let endpoint: Endpoint
    }

    private let counts = Locked<[File: Int]>([:])
    private static let tolerated = 2
    /// Of more files than that nothing is kept, and they are tried as often as any other that fails.
    private static let mostFiles = 10_000

    /// - Returns: The error for the queue: worth another attempt the first two times, and then no more.
    func error(for failure: UnexplainedFailure, of attempt: FileAttempt) -> TransferError {
        let file = File(transferID: attempt.transferID, endpoint: attempt.endpoint)
        let isGivenUp = counts.withLock { counts in
            guard counts[file] != nil || counts.count < Self.mostFiles else { return false }
            let count = counts[file, default: 0] + 1
            counts[file] = count > Self.tolerated ? nil : count
            return count > Self.tolerated
        }
        var error = failure.error
        error.failureClass = isGivenUp ? .permanent : .transient
        return error
    }

    /// An attempt ended in another way.
    func forget(_ attempt: FileAttempt) {
        counts.withLock { $0[File(transferID: attempt.transferID, endpoint: attempt.endpoint)] = nil }
    }
}

extension SFTPUpload {
    /// Looks once at what there is, as many servers have but one status for most of what can go wrong.
    func reason(for failure: StatusFailure) async throws -> any Error {
        do {
            let found = try await client.attributes(.lstat(place.final))
            if found.kind == .folder { return TransferError.isFolder(place.name, at: client.serverName) }
            if options.overwrite == .never { return TransferError.remoteFileExists(place.name, at: client.serverName) }
        } catch let other as StatusFailure where !other.status.isUnexplained && !other.status.code.meansMissing {
            return other.transferError(place.name, .upload, at: client.serverName)
        } catch is StatusFailure {}
        return UnexplainedFailure(error: failure.transferError(place.name, .upload, at: client.serverName))
    }
}

extension SFTPDownload {
    /// As for an upload.
    func reason(for failure: StatusFailure) async throws -> any Error {
        do {
            let found = try await connection.client.attributes(.stat(place.final))
            if found.kind == .folder {
                return TransferError(
                    .permanent, .isFolder, "\(place.name) is a folder at \(connection.client.serverName), and no file.")
            }
        } catch let other as StatusFailure where !other.status.isUnexplained {
            return other.transferError(place.name, .download, at: connection.client.serverName)
        } catch is StatusFailure {}
        return UnexplainedFailure(error: failure.transferError(place.name, .download, at: connection.client.serverName))
    }
}
