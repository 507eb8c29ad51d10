import Locking
import TransferCore

/// The server failed without a reason, and the state of the file shows none.
struct UnexplainedFailure: Error {
    let error: TransferError
}

/// Counts consecutive failures of each file without a reason. Such a failure can be transient, or the server can be unable to take this
/// file, which does not count against the server.
final class UnexplainedFailures: Sendable {
    private struct File: Hashable {
        let transferID: String
        let endpoint: Endpoint
    }

    private let counts = Locked<[File: Int]>([:])
    private static let tolerated = 2
    /// Beyond this number, further files are not counted, and are retried as after any other failure.
    private static let mostFiles = 10_000

    /// - Returns: The error for the queue: transient the first two times, and final after that.
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

    /// Forgets a file's failures, because an attempt ended in another way.
    func forget(_ attempt: FileAttempt) {
        counts.withLock { $0[File(transferID: attempt.transferID, endpoint: attempt.endpoint)] = nil }
    }
}

extension SFTPUpload {
    /// Looks for a reason in the state of the file, because many servers have only one status for most failures.
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
    /// Finds the reason, as for an upload.
    func reason(for failure: StatusFailure) async throws -> any Error {
        do {
            let found = try await connection.client.attributes(.stat(place.final))
            if found.kind == .folder {
                return TransferError(
                    .permanent, .isFolder, "\(place.name) is a folder at \(connection.client.serverName), not a file.")
            }
        } catch let other as StatusFailure where !other.status.isUnexplained {
            return other.transferError(place.name, .download, at: connection.client.serverName)
        } catch is StatusFailure {}
        return UnexplainedFailure(error: failure.transferError(place.name, .download, at: connection.client.serverName))
    }
}
