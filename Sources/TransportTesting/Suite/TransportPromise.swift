import TransferCore

/// A promise that every transport must keep.
///
/// For each case, call ``verify(_:deadline:)`` in any test framework:
///
/// ```swift
/// @Test(arguments: TransportPromise.allCases)
/// func keeps(_ promise: TransportPromise) async throws {
///     try await promise.verify(FolderFixture())
/// }
/// ```
public enum TransportPromise: String, CaseIterable, Sendable, CustomStringConvertible {
    // Content
    /// The content arrives intact, whatever its size.
    case contentArrivesIntact = "The content arrives intact, whatever its size"
    /// The receipt contains the number of bytes.
    case receiptHasSize = "The receipt contains the number of bytes"
    /// A hundred files sent concurrently arrive intact.
    case manyFilesArrive = "A hundred files sent concurrently arrive intact"
    /// A file with an unusual name arrives, or is rejected before any byte is stored.
    case unusualNamesAreSafe = "A file with an unusual name arrives, or is rejected before any byte is stored"
    // Resuming
    /// A file resumes from its last checkpoint, or restarts cleanly, after a broken connection.
    case resumesAfterLostConnection = "A file resumes from its last checkpoint, or restarts cleanly, after a broken connection"
    /// A file resumes from its last checkpoint, or restarts cleanly, after a cancellation.
    case resumesAfterCancellation = "A file resumes from its last checkpoint, or restarts cleanly, after a cancellation"
    /// A checkpoint never covers more bytes than the other end has.
    case checkpointIsAccurate = "A checkpoint never covers more bytes than the other end has"
    // Progress
    /// Progress never decreases in an attempt.
    case progressNeverDecreases = "Progress never decreases in an attempt"
    /// The other end has every byte that is reported as confirmed.
    case confirmedBytesAreStored = "The other end has every byte that is reported as confirmed"
    /// Progress ends at the size of the file.
    case progressEndsAtSize = "Progress ends at the size of the file"
    /// An attempt sends no more bytes than the rate limits allow.
    case rateLimitIsRespected = "An attempt sends no more bytes than the rate limits allow"
    // Cancellation
    /// A cancelled attempt ends and throws a CancellationError.
    case cancelledAttemptEnds = "A cancelled attempt ends and throws a CancellationError"
    // The source
    /// A source that changed after the queue recorded its identity is rejected.
    case changedSourceIsRejected = "A source that changed after the queue recorded its identity is rejected"
    /// A source that changed since its checkpoint is rejected.
    case changedSourceIsRejectedOnResume = "A source that changed since its checkpoint is rejected"
    /// A change to the source during an attempt is detected.
    case changeDuringAttemptIsDetected = "A change to the source during an attempt is detected"
    /// A missing source causes an error of class sourceLost.
    case missingSourceThrowsSourceLost = "A missing source causes an error of class sourceLost"
    // The endpoint
    /// A refused connection causes an error of class unreachable.
    case refusedConnectionIsUnreachable = "A refused connection causes an error of class unreachable"
    /// Errors, receipts and checkpoints contain no secret.
    case secretsDoNotLeak = "Errors, receipts and checkpoints contain no secret"

    /// The promise, as a sentence.
    public var description: String { rawValue }

    /// Checks the promise for a transport. Call this method from any executor.
    ///
    /// - Parameters:
    ///   - fixture: Connects the check to a server.
    ///   - deadline: The time after which the suite considers an attempt hung; not a performance threshold.
    /// - Throws: A ``PromiseViolation`` if the transport breaks the promise, or an error from the fixture.
    public func verify(_ fixture: some TransportFixture, deadline: Duration = .seconds(180)) async throws {
        try await PromiseCheck.run(rawValue, fixture, deadline) { try await run($0) }
    }

    private func run(_ check: PromiseCheck<some TransportFixture>) async throws {
        switch self {
        case .contentArrivesIntact: try await check.contentArrivesIntact()
        case .receiptHasSize: try await check.receiptHasSize()
        case .manyFilesArrive: try await check.manyFilesArrive()
        case .unusualNamesAreSafe: try await check.unusualNamesAreSafe()
        case .resumesAfterLostConnection: try await check.resumesAfterLostConnection()
        case .resumesAfterCancellation: try await check.resumesAfterCancellation()
        case .checkpointIsAccurate: try await check.checkpointIsAccurate()
        case .progressNeverDecreases: try await check.progressNeverDecreases()
        case .confirmedBytesAreStored: try await check.confirmedBytesAreStored()
        case .progressEndsAtSize: try await check.progressEndsAtSize()
        case .rateLimitIsRespected: try await check.rateLimitIsRespected()
        case .cancelledAttemptEnds: try await check.cancelledAttemptEnds()
        case .changedSourceIsRejected: try await check.changedSourceIsRejected()
        case .changedSourceIsRejectedOnResume: try await check.changedSourceIsRejectedOnResume()
        case .changeDuringAttemptIsDetected: try await check.changeDuringAttemptIsDetected()
        case .missingSourceThrowsSourceLost: try await check.missingSourceThrowsSourceLost()
        case .refusedConnectionIsUnreachable: try await check.refusedConnectionIsUnreachable()
        case .secretsDoNotLeak: try await check.secretsDoNotLeak()
        }
    }
}
