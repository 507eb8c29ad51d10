import Locking
import TransferCore

/// The part file that a failed upload leaves on the server. The error of the attempt contains its path, so users who do not want to resume
/// the upload can remove the file. If the attempt is cancelled, the transport reports the part file instead, for the error of a stalled
/// attempt.
final class RemainingPart: Sendable {
    private let endpoint: Endpoint
    private let path: Locked<[UInt8]?>

    /// The classes of errors with which a session can fail and leave a part file. After other errors, the account or the session waits, or
    /// the upload restarts in a new part file.
    private let failureClasses: Set<FailureClass>

    /// Starts with the part file of the attempt's checkpoint, because the attempt may fail before it reaches the server.
    init(of attempt: FileAttempt) {
        endpoint = attempt.endpoint
        var known: [UInt8]?
        var failureClasses: Set<FailureClass> = [.transient, .unreachable, .remoteFull]
        // The error of a stream's producer must reach the app unchanged.
        if case .upload(let source) = attempt.payload, source.growth == nil {
            failureClasses.formUnion([.unsupported, .protocolViolation, .permanent, .sourceLost])
        }
        self.failureClasses = failureClasses
        if case .upload = attempt.payload { known = attempt.checkpoint.flatMap { UploadCheckpoint($0) }?.existingPart }
        path = Locked(known)
    }

    /// Sets the path of the part file, which now exists. Call this method only for a file that does not have the final name.
    func didCreate(_ part: [UInt8]) { path.withLock { $0 = part } }

    /// Removes the path of the part file if this file no longer exists.
    func didRemove(_ part: [UInt8]) {
        path.withLock { if $0 == part { $0 = nil } }
    }

    /// The server and the path of the part file, as a part of an error's cause; nil if there is no part file.
    var location: String? {
        guard let part = path.withLock({ $0 }), let address = try? SFTPAddress(endpoint) else { return nil }
        return "unfinished part file at \(address.serverName): \(String(decoding: part, as: UTF8.self))"
    }

    /// Returns an error with the path of the part file as a part of its cause. Returns the error itself if there is no part file, or if the
    /// error has another class.
    func named(in error: any Error) -> any Error {
        guard var error = error as? TransferError, failureClasses.contains(error.failureClass), let location else { return error }
        error.cause = error.cause.map { "\($0); \(location)" } ?? location
        return error
    }
}
