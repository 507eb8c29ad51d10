public import TransferCore

/// What the suite needs beyond a ``DownloadingFixture`` for a transport that lists folders. ``DownloadingFixture/provide(_:as:)`` makes the
/// folders that a file is in.
public protocol ListingFixture: DownloadingFixture {
    /// Makes an empty folder at the other end.
    func makeFolder(_ path: RemotePath) async throws
}

/// A promise that every transport keeps that lists folders, see `FolderListing`; checked as a ``TransportPromise``.
public enum ListingPromise: String, CaseIterable, Sendable, CustomStringConvertible {
    case entriesAreWhole = "Each entry of a folder is listed once, with what it is and how large it is"
    case largeFolderIsWhole = "A folder of many entries is listed to its end"
    case namesAreKept = "Names are listed as they are, whatever they hold"
    case emptyFolderIsEmpty = "An empty folder is listed without an entry"
    case missingFolderIsPermanent = "A folder that is missing, or a file in its place, is an error of the class permanent"
    case receiverEndsListing = "A listing ends with the error of who receives it"
    case cancellationEnds = "A cancelled listing ends, and throws a CancellationError"
    case refusedConnectionIsUnreachable = "A refused connection is an error of the class unreachable, for a listing too"

    /// The promise as a sentence.
    public var description: String { rawValue }

    /// Checks the promise against a transport; may be called from any executor.
    ///
    /// - Parameter deadline: How long one listing may take before it counts as hanging. Generous: it is no measure of speed.
    /// - Throws: A ``PromiseViolation`` if the transport breaks the promise; what the fixture throws.
    public func verify(_ fixture: some ListingFixture, deadline: Duration = .seconds(180)) async throws {
        try await PromiseCheck.run(rawValue, fixture, deadline) { try await run($0) }
    }

    private func run(_ check: PromiseCheck<some ListingFixture>) async throws {
        switch self {
        case .entriesAreWhole: try await check.entriesAreWhole()
        case .largeFolderIsWhole: try await check.largeFolderIsWhole()
        case .namesAreKept: try await check.namesAreKept()
        case .emptyFolderIsEmpty: try await check.emptyFolderIsEmpty()
        case .missingFolderIsPermanent: try await check.missingFolderIsPermanent()
        case .receiverEndsListing: try await check.receiverEndsListing()
        case .cancellationEnds: try await check.listingCancellationEnds()
        case .refusedConnectionIsUnreachable: try await check.refusedListingIsUnreachable()
        }
    }
}
