import TransferCore

/// A promise that every transport keeps.
///
/// For each of them, call ``verify(_:deadline:)`` from a test of any framework:
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
    case receiptTellsSize = "The receipt tells how many bytes there are"
    case manyFilesArrive = "A hundred files at once arrive"
    case oddNamesAreSafe = "A file with an odd name arrives, or is refused before its first byte"
    // Resuming
    case resumesAfterCut = "A file goes on from its last checkpoint, or cleanly starts over, after its connection broke"
    case resumesAfterCancellation = "A file goes on from its last checkpoint, or cleanly starts over, after it was cancelled"
    case checkpointIsTrue = "A checkpoint never claims more than the other end has"
    // Progress
    case progressNeverDecreases = "Progress never decreases in an attempt"
    case confirmedIsTrue = "No byte is reported as confirmed that the other end does not have"
    case progressEndsAtSize = "Progress ends at the size of the file"
    case allowanceIsKept = "No more bytes are sent than the rate limits allow"
    // Cancellation
    case cancellationEnds = "A cancelled attempt ends, and throws a CancellationError"
    // The source
    case changedSourceIsRefused = "A source that changed since it was looked at is refused"
    case changedSourceIsNotResumed = "A source that changed since its checkpoint is refused"
    case changeDuringAttemptIsNoticed = "A source that changes while it is sent is noticed"
    case missingSourceIsLost = "A source that is missing is an error of the class sourceLost"
    // The endpoint
    case refusedConnectionIsUnreachable = "A refused connection is an error of the class unreachable"
    case secretsAreKept = "No secret is in an error, a receipt or a checkpoint"

    /// The promise as a sentence.
    public var description: String { rawValue }

    /// A promise that a transport broke.
    public typealias Violation = PromiseViolation

    /// Checks the promise against a transport; may be called from any executor.
    ///
    /// - Parameter deadline: How long one attempt may take before it counts as hanging. Generous: it is no measure of speed.
    /// - Throws: A ``Violation`` if the transport breaks the promise; what the fixture throws.
    public func verify(_ fixture: some TransportFixture, deadline: Duration = .seconds(180)) async throws {
        try await PromiseCheck.run(rawValue, fixture, deadline) { try await run($0) }
    }

    private func run(_ check: PromiseCheck<some TransportFixture>) async throws {
        switch self {
        case .contentArrivesIntact: try await check.contentArrivesIntact()
        case .receiptTellsSize: try await check.receiptTellsSize()
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
