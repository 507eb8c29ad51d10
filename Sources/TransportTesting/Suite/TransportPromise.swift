import TransferCore

/// A requirement that every transport must meet.
///
/// For each case, call ``verify(_:deadline:)`` in any test framework:
///
/// ```swift
/// @Test(arguments: TransportPromise.allCases)
/// func keeps(_ promise: TransportPromise) async throws {
///     try await promise.verify(MyFixture())
/// }
/// ```
public enum TransportPromise: String, CaseIterable, Sendable, CustomStringConvertible {
    // Content
    case contentArrivesIntact = "The content arrives intact, whatever its size"
    case receiptHasSize = "The receipt contains the number of bytes"
    case manyFilesArrive = "A hundred files sent concurrently arrive intact"
    case unusualNamesAreSafe = "A file with an unusual name arrives, or is rejected before any byte is stored"
    // Resuming
    case resumesAfterLostConnection = "A file resumes from its last checkpoint, or restarts cleanly, after a broken connection"
    case resumesAfterCancellation = "A file resumes from its last checkpoint, or restarts cleanly, after a cancellation"
    case checkpointIsAccurate = "A checkpoint never covers more bytes than the other end has"
    // Progress
    case progressNeverDecreases = "Progress never decreases in an attempt"
    case confirmedBytesAreStored = "The other end has every byte that is reported as confirmed"
    case progressEndsAtSize = "Progress ends at the size of the file"
    case rateLimitIsRespected = "An attempt sends no more bytes than the rate limits allow"
    // Cancellation
    case cancellationEnds = "A cancelled attempt ends and throws a CancellationError"
    // The source
    case changedSourceIsRefused = "A source that changed after the queue recorded its identity is rejected"
    case changedSourceIsNotResumed = "A source that changed since its checkpoint is rejected"
    case changeDuringAttemptIsNoticed = "A change to the source during an attempt is detected"
    case missingSourceThrowsSourceLost = "A missing source causes an error of class sourceLost"
    // The endpoint
    case refusedConnectionIsUnreachable = "A refused connection causes an error of class unreachable"
    case secretsDoNotLeak = "Errors, receipts and checkpoints contain no secret"

    /// The promise, as a sentence.
    public var description: String { rawValue }

    /// The error that reports a broken promise.
    public typealias Violation = PromiseViolation

    /// Checks the promise for a transport. Call it from any executor.
    ///
    /// - Parameter deadline: The time after which an attempt counts as hung. It is not a performance threshold.
    /// - Throws: A ``Violation`` if the transport breaks the promise, or an error from the fixture.
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
        case .cancellationEnds: try await check.cancellationEnds()
        case .changedSourceIsRefused: try await check.changedSourceIsRefused()
        case .changedSourceIsNotResumed: try await check.changedSourceIsNotResumed()
        case .changeDuringAttemptIsNoticed: try await check.changeDuringAttemptIsNoticed()
        case .missingSourceThrowsSourceLost: try await check.missingSourceThrowsSourceLost()
        case .refusedConnectionIsUnreachable: try await check.refusedConnectionIsUnreachable()
        case .secretsDoNotLeak: try await check.secretsDoNotLeak()
        }
    }
}
