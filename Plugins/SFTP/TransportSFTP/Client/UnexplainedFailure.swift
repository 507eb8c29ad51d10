import Locking
import TransferCore

/// The error for a failure whose reason is unknown, even after a check of the remote file.
struct UnexplainedFailure: Error {
    let error: TransferError
}

/// Counts the consecutive unexplained failures of each file, to decide between retrying and giving up. Such a failure can be transient, or
/// the server may be unable to transfer this file. An unexplained failure does not make the queue avoid the endpoint.
final class UnexplainedFailures: Sendable {
    private struct File: Hashable {
        let transferID: String
        let endpoint: Endpoint
    }

    private let counts = Locked<[File: Int]>([:])
    private static let toleratedFailures = 2
    /// The maximum number of files to count. Failures of further files stay transient.
    private static let maximumFiles = 10_000

    /// - Returns: The error for the queue: transient for the first two consecutive failures of the file, and permanent for the third.
    func error(for failure: UnexplainedFailure, of attempt: FileAttempt) -> TransferError {
        let file = File(transferID: attempt.transferID, endpoint: attempt.endpoint)
        let isGivenUp = counts.withLock { counts in
            guard counts[file] != nil || counts.count < Self.maximumFiles else { return false }
            let count = counts[file, default: 0] + 1
            counts[file] = count > Self.toleratedFailures ? nil : count
            return count > Self.toleratedFailures
        }
        var error = failure.error
        error.failureClass = isGivenUp ? .permanent : .transient
        return error
    }

    /// Called when an attempt succeeded, or failed for a known reason.
    func forget(_ attempt: FileAttempt) {
        counts.withLock { $0[File(transferID: attempt.transferID, endpoint: attempt.endpoint)] = nil }
    }
}

extension SFTPUpload {
    /// Finds the reason for a failure by checking the remote file, because many servers use one status for most failures.
    func reason(for failure: StatusFailure) async throws -> any Error {
        do {
            let found = try await client.attributes(.lstat(paths.final))
            if found.kind == .folder { return TransferError.remoteFolderExists(paths.name, at: client.serverName) }
            if options.overwrite == .never { return TransferError.remoteFileExists(paths.name, at: client.serverName) }
        } catch let other as StatusFailure where !other.status.isUnexplained && !other.status.code.meansMissing {
            return other.transferError(paths.name, .upload, at: client.serverName)
        } catch is StatusFailure {}
        return UnexplainedFailure(error: failure.transferError(paths.name, .upload, at: client.serverName))
    }
}

extension SFTPDownload {
    /// Finds the reason for a failure by checking the remote file, because many servers use one status for most failures.
    func reason(for failure: StatusFailure) async throws -> any Error {
        do {
            let found = try await connection.client.attributes(.stat(paths.final))
            if found.kind == .folder {
                return TransferError(
                    .permanent, .isFolder, "\(paths.name) is a folder at \(connection.client.serverName), not a file.")
            }
        } catch let other as StatusFailure where !other.status.isUnexplained {
            return other.transferError(paths.name, .download, at: connection.client.serverName)
        } catch is StatusFailure {}
        return UnexplainedFailure(error: failure.transferError(paths.name, .download, at: connection.client.serverName))
    }
}
