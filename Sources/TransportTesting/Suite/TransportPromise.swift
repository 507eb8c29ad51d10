import TransferCore

/// A requirement that every transport must meet.
///
/// For each case, call ``verify(_:deadline:)`` in a test of any framework:
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
    case manyFilesArrive = "A hundred concurrent files arrive intact"
    case oddNamesAreSafe = "A file with an unusual name arrives, or is rejected before its first byte"
    // Resuming
    case resumesAfterCut = "A file resumes from its last checkpoint, or restarts cleanly, after a broken connection"
    case resumesAfterCancellation = "A file resumes from its last checkpoint, or restarts cleanly, after a cancellation"
    case checkpointIsTrue = "A checkpoint never covers more bytes than the other end has"
    // Progress
    case progressNeverDecreases = "Progress never decreases in an attempt"
    case confirmedIsTrue = "The other end has every byte that is reported as confirmed"
    case progressEndsAtSize = "Progress ends at the size of the file"
    case allowanceIsKept = "An attempt sends no more bytes than the rate limits allow"
    // Cancellation
    case cancellationEnds = "A cancelled attempt ends and throws a CancellationError"
    // The source
    case changedSourceIsRefused = "A source that changed since the queue read it is rejected"
    case changedSourceIsNotResumed = "A source that changed since its checkpoint is rejected"
    case changeDuringAttemptIsNoticed = "A change of the source during an attempt is detected"
    case missingSourceIsLost = "A missing source is an error of the class sourceLost"
    // The endpoint
    case refusedConnectionIsUnreachable = "A refused connection is an error of the class unreachable"
    case secretsAreKept = "Errors, receipts and checkpoints contain no secret"

    /// The promise, as a sentence.
    public var description: String { rawValue }

    /// An error for a broken promise.
    public typealias Violation = PromiseViolation

    /// Checks the promise for a transport. Call it from any executor.
    ///
    /// - Parameter deadline: The time after which an attempt counts as hanging. It does not measure speed.
    /// - Throws: A ``Violation`` if the transport breaks the promise, or an error of the fixture.
    public func verify(_ fixture: some TransportFixture, deadline: Duration = .seconds(180)) async throws {
        try await PromiseCheck.run(rawValue, fixture, deadline) { try await run($0) }
    }

    private func run(_ check: PromiseCheck<some TransportFixture>) async throws {
        switch self {
        case .contentArrivesIntact: try await check.contentArrivesIntact()
        case .receiptHasSize: try await check.receiptHasSize()
        case .manyFilesArrive: try await check.manyFilesArrive()
        case .oddNamesAreSafe: try await check.oddNamesAreSafe()
        case .resumesAfterCut: try await check.resumesAfterCut()
        case .resumesAfterCancellation: try await check.resumesAfterCancellation()
        case .checkpointIsTrue: try await check.checkpointIsTrue()
        case .progressNeverDecreases: try await check.progressNeverDecreases()
        case .confirmedIsTrue: try await check.confirmedIsTrue()
        case .progressEndsAtSize: try await check.progressEndsAtSize()
        case .allowanceIsKept: try await check.allowanceIsKept()
        case .cancellationEnds: try await check.cancellationEnds()
        case .changedSourceIsRefused: try await check.changedSourceIsRefused()
        case .changedSourceIsNotResumed: try await check.changedSourceIsNotResumed()
        case .changeDuringAttemptIsNoticed: try await check.changeDuringAttemptIsNoticed()
        case .missingSourceIsLost: try await check.missingSourceIsLost()
        case .refusedConnectionIsUnreachable: try await check.refusedConnectionIsUnreachable()
        case .secretsAreKept: try await check.secretsAreKept()
        }
    }
}
