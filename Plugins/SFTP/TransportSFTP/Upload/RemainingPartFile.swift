import Locking
import TransferCore

/// The part file that a failed upload leaves on the server. The error of the attempt contains the file's path, so users who do not want to
/// resume the upload can remove the file. If the attempt is cancelled, for example because it stalled, the queue creates the error. So the
/// transport reports the part file to the queue instead.
final class RemainingPartFile: Sendable {
    private let endpoint: Endpoint
    private let path: Locked<[UInt8]?>

    /// The classes of errors whose cause names the part file. After errors of most other classes, the account or the session waits, or the
    /// upload restarts in a new part file.
    private let failureClasses: Set<FailureClass>

    /// Starts with the part file of the attempt's checkpoint, because the attempt may fail before it reaches the server.
    init(of attempt: FileAttempt) {
        endpoint = attempt.endpoint
        var existing: [UInt8]?
        var failureClasses: Set<FailureClass> = [.transient, .unreachable, .remoteFull]
        // The error of a stream's producer must reach the app unchanged.
        if case .upload(let source) = attempt.payload, source.growth == nil {
            failureClasses.formUnion([.unsupported, .protocolViolation, .permanent, .sourceLost])
        }
        self.failureClasses = failureClasses
        if case .upload = attempt.payload { existing = attempt.checkpoint.flatMap { UploadCheckpoint($0) }?.existingPartFile }
        path = Locked(existing)
    }

    /// Call this method when the part file exists, but not for a file under the final name.
    func didCreate(_ partPath: [UInt8]) { path.withLock { $0 = partPath } }

    func didRemove(_ partPath: [UInt8]) {
        path.withLock { if $0 == partPath { $0 = nil } }
    }

    /// For an error's cause; nil if there is no part file.
    var location: String? {
        guard let partPath = path.withLock({ $0 }), let address = try? SFTPAddress(endpoint) else { return nil }
        return "unfinished part file at \(address.serverName): \(String(decoding: partPath, as: UTF8.self))"
    }

    /// Adds ``location`` to the cause of an error, if there is a part file and `failureClasses` contains the error's class.
    func addingLocation(to error: any Error) -> any Error {
        guard var error = error as? TransferError, failureClasses.contains(error.failureClass), let location else { return error }
        error.cause = error.cause.map { "\($0); \(location)" } ?? location
        return error
    }
}
