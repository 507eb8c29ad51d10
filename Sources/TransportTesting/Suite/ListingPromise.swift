public import TransferCore

/// The fixture for a transport that lists folders. Its ``DownloadingFixture/provide(_:as:)`` must create the parent folders of a file.
public protocol ListingFixture: DownloadingFixture {
    /// Creates an empty remote folder.
    func makeFolder(_ path: RemotePath) async throws
}

/// A promise that every transport that lists folders (`FolderListing`) must keep. Check the promise as shown in ``TransportPromise``.
public enum ListingPromise: String, CaseIterable, Sendable, CustomStringConvertible {
    /// Each entry of a folder is listed once, with its kind and size.
    case entriesAreComplete = "Each entry of a folder is listed once, with its kind and size"
    /// A folder with many entries is listed completely.
    case largeFolderIsComplete = "A folder with many entries is listed completely"
    /// Names are listed unchanged, whatever they contain.
    case namesAreKept = "Names are listed unchanged, whatever they contain"
    /// The listing of an empty folder has no entries.
    case emptyFolderIsEmpty = "The listing of an empty folder has no entries"
    /// A missing folder, or a file instead of a folder, causes an error of class permanent. The error must have the code
    /// ``/TransferCore/TransferError/Code/noSuchRemoteFile``.
    case missingFolderIsPermanent = "A missing folder, or a file instead of a folder, causes an error of class permanent"
    /// If the receiver throws an error, the listing ends with this error.
    case receiverEndsListing = "If the receiver throws an error, the listing ends with this error"
    /// A cancelled listing ends and throws a CancellationError.
    case cancelledAttemptEnds = "A cancelled listing ends and throws a CancellationError"
    /// In a listing, a refused connection causes an error of class unreachable.
    case refusedConnectionIsUnreachable = "In a listing, a refused connection causes an error of class unreachable"

    /// The promise, as a sentence.
    public var description: String { rawValue }

    /// Checks the promise for a transport. Call this method from any executor.
    ///
    /// - Parameters:
    ///   - fixture: Connects the check to a server.
    ///   - deadline: The time after which the suite considers a listing hung; not a performance threshold.
    /// - Throws: A ``PromiseViolation`` if the transport breaks the promise, or an error from the fixture.
    public func verify(_ fixture: some ListingFixture, deadline: Duration = .seconds(180)) async throws {
        try await PromiseCheck.run(rawValue, fixture, deadline) { try await run($0) }
    }

    private func run(_ check: PromiseCheck<some ListingFixture>) async throws {
        switch self {
        case .entriesAreComplete: try await check.entriesAreComplete()
        case .largeFolderIsComplete: try await check.largeFolderIsComplete()
        case .namesAreKept: try await check.namesAreKept()
        case .emptyFolderIsEmpty: try await check.emptyFolderIsEmpty()
        case .missingFolderIsPermanent: try await check.missingFolderIsPermanent()
        case .receiverEndsListing: try await check.receiverEndsListing()
        case .cancelledAttemptEnds: try await check.listingCancellationEnds()
        case .refusedConnectionIsUnreachable: try await check.refusedListingIsUnreachable()
        }
    }
}
