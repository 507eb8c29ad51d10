public import Foundation
public import TransferCore

/// What the suite needs beyond a ``TransportFixture`` for a transport that downloads.
///
/// ``TransportFixture/cut(afterBytes:)`` breaks downloads, too: after so many bytes of content left the server.
public protocol DownloadingFixture: TransportFixture {
    /// Puts a file at the other end. One of that name is replaced: what was received of it can't be continued.
    func provide(_ content: Data, as path: RemotePath) async throws
}

/// A promise that every transport keeps that downloads; checked as a ``TransportPromise``.
public enum DownloadPromise: String, CaseIterable, Sendable, CustomStringConvertible {
    // Content
    case contentArrivesIntact = "A downloaded file is intact, whatever its size"
    case nameComesLast = "A download has its name only when it is complete"
    case receiptTellsSize = "The receipt tells how many bytes were received"
    case totalIsTrue = "The size that is told is that of the file"
    case missingFileIsPermanent = "A file that is missing at the other end is an error of the class permanent"
    // Resuming
    case resumesAfterCut = "A download goes on from its last checkpoint after its connection broke"
    case resumesAfterCancellation = "A download goes on from its last checkpoint after it was cancelled"
    case checkpointIsTrue = "A checkpoint never claims more than this machine has"
    case changedFileIsNotResumed = "A file that changed at the other end since its checkpoint is an error of the class resumeLost"
    case lostPartIsNotResumed = "A part that is gone from this machine is an error of the class resumeLost"
    // Progress
    case progressNeverDecreases = "Progress never decreases in a download"
    case progressEndsAtSize = "Progress ends at the size of the downloaded file"
    case allowanceIsKept = "No more bytes are received than the rate limits allow"
    case cancellationEnds = "A cancelled download ends, and throws a CancellationError"
    // What is there
    case nothingIsReplacedUnasked = "A file that is there is not replaced unless that is asked for"
    case replacesWhenAsked = "A file that is there is replaced if that is asked for"
    case staysInFolder = "Nothing is written outside of the folder, whatever links are in the way"
    // The endpoint
    case refusedConnectionIsUnreachable = "A refused connection is an error of the class unreachable, for a download too"

    /// The promise as a sentence.
    public var description: String { rawValue }

    /// Checks the promise against a transport; may be called from any executor.
    ///
    /// - Parameter deadline: How long one attempt may take before it counts as hanging. Generous: it is no measure of speed.
    /// - Throws: A ``PromiseViolation`` if the transport breaks the promise; what the fixture throws.
    public func verify(_ fixture: some DownloadingFixture, deadline: Duration = .seconds(180)) async throws {
        try await PromiseCheck.run(rawValue, fixture, deadline) { try await run($0) }
    }

    private func run(_ check: PromiseCheck<some DownloadingFixture>) async throws {
        switch self {
        case .contentArrivesIntact: try await check.downloadsArriveIntact()
        case .nameComesLast: try await check.nameComesLast()
        case .receiptTellsSize: try await check.downloadReceiptTellsSize()
        case .totalIsTrue: try await check.totalIsTrue()
        case .missingFileIsPermanent: try await check.missingFileIsPermanent()
        case .resumesAfterCut: try await check.downloadResumesAfterCut()
        case .resumesAfterCancellation: try await check.downloadResumesAfterCancellation()
        case .checkpointIsTrue: try await check.downloadCheckpointIsTrue()
        case .changedFileIsNotResumed: try await check.changedFileIsNotResumed()
        case .lostPartIsNotResumed: try await check.lostPartIsNotResumed()
        case .progressNeverDecreases: try await check.downloadProgressNeverDecreases()
        case .progressEndsAtSize: try await check.downloadProgressEndsAtSize()
        case .allowanceIsKept: try await check.downloadAllowanceIsKept()
        case .cancellationEnds: try await check.downloadCancellationEnds()
        case .nothingIsReplacedUnasked: try await check.nothingIsReplacedUnasked()
        case .replacesWhenAsked: try await check.replacesWhenAsked()
        case .staysInFolder: try await check.staysInFolder()
        case .refusedConnectionIsUnreachable: try await check.refusedDownloadIsUnreachable()
        }
    }
}
