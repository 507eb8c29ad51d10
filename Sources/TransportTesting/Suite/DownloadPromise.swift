public import Foundation
public import TransferCore

/// The fixture for a transport that can download files.
///
/// ``TransportFixture/cut(afterBytes:)`` must also break downloads, after the server has sent the given number of content bytes.
public protocol DownloadingFixture: TransportFixture {
    /// Creates a remote file. If a file with this name exists, replaces the file, and unfinished downloads of the old file can't resume.
    func provide(_ content: Data, as path: RemotePath) async throws
}

/// A promise that every transport for downloads must keep. Check the promise as shown in ``TransportPromise``.
public enum DownloadPromise: String, CaseIterable, Sendable, CustomStringConvertible {
    // Content
    /// A downloaded file is intact, whatever its size.
    case contentArrivesIntact = "A downloaded file is intact, whatever its size"
    /// A download gets its final name only when it is complete.
    case nameComesLast = "A download gets its final name only when it is complete"
    /// The receipt contains the number of received bytes.
    case receiptHasSize = "The receipt contains the number of received bytes"
    /// The reported size is the size of the file.
    case reportedSizeIsCorrect = "The reported size is the size of the file"
    /// A missing remote file causes an error of class permanent.
    case missingFileIsPermanent = "A missing remote file causes an error of class permanent"
    // Resuming
    /// A download resumes from its last checkpoint after a broken connection.
    case resumesAfterLostConnection = "A download resumes from its last checkpoint after a broken connection"
    /// A download resumes from its last checkpoint after a cancellation.
    case resumesAfterCancellation = "A download resumes from its last checkpoint after a cancellation"
    /// A checkpoint never covers more bytes than this machine has received.
    case checkpointIsAccurate = "A checkpoint never covers more bytes than this machine has received"
    /// A remote file that changed since its checkpoint causes an error of class resumeLost.
    case changedFileIsNotResumed = "A remote file that changed since its checkpoint causes an error of class resumeLost"
    /// A missing part file causes an error of class resumeLost.
    case lostPartFileIsNotResumed = "A missing part file causes an error of class resumeLost"
    // Progress
    /// Progress never decreases in a download.
    case progressNeverDecreases = "Progress never decreases in a download"
    /// Progress ends at the size of the downloaded file.
    case progressEndsAtSize = "Progress ends at the size of the downloaded file"
    /// A download receives no more bytes than the rate limits allow.
    case rateLimitIsRespected = "A download receives no more bytes than the rate limits allow"
    /// A cancelled download ends and throws a CancellationError.
    case cancelledAttemptEnds = "A cancelled download ends and throws a CancellationError"
    // The existing file
    /// An existing file is not replaced by default.
    case existingFileIsKeptByDefault = "An existing file is not replaced by default"
    /// An existing file is replaced if the policy requires it.
    case replacesIfConfigured = "An existing file is replaced if the policy requires it"
    /// Nothing is written outside of the folder, even with links in the path.
    case staysInFolder = "Nothing is written outside of the folder, even with links in the path"
    // The endpoint
    /// In a download, a refused connection causes an error of class unreachable.
    case refusedConnectionIsUnreachable = "In a download, a refused connection causes an error of class unreachable"

    /// The promise, as a sentence.
    public var description: String { rawValue }

    /// Checks the promise for a transport. Call this method from any executor.
    ///
    /// - Parameters:
    ///   - fixture: Connects the check to a server.
    ///   - deadline: The time after which the suite considers an attempt hung; not a performance threshold.
    /// - Throws: A ``PromiseViolation`` if the transport breaks the promise, or an error from the fixture.
    public func verify(_ fixture: some DownloadingFixture, deadline: Duration = .seconds(180)) async throws {
        try await PromiseCheck.run(rawValue, fixture, deadline) { try await run($0) }
    }

    private func run(_ check: PromiseCheck<some DownloadingFixture>) async throws {
        switch self {
        case .contentArrivesIntact: try await check.downloadsArriveIntact()
        case .nameComesLast: try await check.nameComesLast()
        case .receiptHasSize: try await check.downloadReceiptHasSize()
        case .reportedSizeIsCorrect: try await check.reportedSizeIsCorrect()
        case .missingFileIsPermanent: try await check.missingFileIsPermanent()
        case .resumesAfterLostConnection: try await check.downloadResumesAfterCut()
        case .resumesAfterCancellation: try await check.downloadResumesAfterCancellation()
        case .checkpointIsAccurate: try await check.downloadCheckpointIsAccurate()
        case .changedFileIsNotResumed: try await check.changedFileIsNotResumed()
        case .lostPartFileIsNotResumed: try await check.lostPartFileIsNotResumed()
        case .progressNeverDecreases: try await check.downloadProgressNeverDecreases()
        case .progressEndsAtSize: try await check.downloadProgressEndsAtSize()
        case .rateLimitIsRespected: try await check.downloadRateLimitIsRespected()
        case .cancelledAttemptEnds: try await check.downloadCancellationEnds()
        case .existingFileIsKeptByDefault: try await check.existingFileIsKeptByDefault()
        case .replacesIfConfigured: try await check.replacesIfConfigured()
        case .staysInFolder: try await check.staysInFolder()
        case .refusedConnectionIsUnreachable: try await check.refusedDownloadIsUnreachable()
        }
    }
}
