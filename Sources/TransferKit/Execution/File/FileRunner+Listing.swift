import SystemPackage
import TransferCore

/// The parameters with which a ``FileRunner`` lists a folder.
struct FolderListingWork: Sendable {
    /// Whether to list a symbolic link to a regular file as a file.
    var resolvesLinks: Bool
    /// Creates a catalogue for the entries of one attempt, and deletes the rows that earlier attempts stored.
    var begin: @Sendable () async throws -> FolderCatalogue
}

extension Endpoint {
    /// Returns whether the endpoint's transport can list folders at this endpoint. Does not connect to the server.
    func canList(with transports: [TransportID: any Transport]) -> Bool {
        guard let transport = transports[transport] as? any FolderListing else { return false }
        return (try? transport.validateListing(at: self)) != nil
    }
}

extension EndpointAvailability {
    /// The account with its endpoints in the order in which the queue tries them for the file. For a folder, omits endpoints that can't list folders,
    /// unless no endpoint can.
    func ordered(for file: PendingFile, _ transports: [TransportID: any Transport]) -> EndpointAvailability {
        let preferred = preferring(file.kind.isDownload ? .download : .upload, size: file.size)
        let canList = { (endpoint: Endpoint) in endpoint.canList(with: transports) }
        if file.kind == .remoteFolder { return preferred.registered.contains(where: canList) ? preferred.keeping(canList) : preferred }
        // A listed file is first requested from endpoints that can list folders, because one of these endpoints listed it. At other
        // endpoints, the file's name may refer to a different file.
        return file.isListed ? preferred.sorted(first: canList) : preferred
    }
}

extension FileRunner {
    /// Reports the file as a folder if its attempt failed because its remote name refers to a folder, and the endpoint's transport can list
    /// folders. The session then lists the folder after its other files. A file with an expected checksum, or from a listing, is not
    /// reported.
    ///
    /// - Returns: Whether the file was reported as a folder.
    func reportFolder(from error: TransferError, at endpoint: Endpoint) async throws(QueueError) -> Bool {
        guard error.code == .isFolder, file.kind == .download, !file.isListed, context.options.expectedChecksum == nil,
            endpoint.canList(with: context.transports)
        else { return false }
        try await context.send(.file(position: file.position, .foundFolder))
        context.live.foundFolder(position: file.position, size: file.size)
        return true
    }

    /// Lists the folder, and returns when the ``FolderCatalogue`` has received all entries.
    ///
    /// - Throws: The ``TransferError`` of a failed listing; `CancellationError`; ``QueueError`` if the database can't be used.
    mutating func list(at endpoint: Endpoint) async throws {
        guard let listing else { return }
        history.began()
        let path = try RemotePath.folder(bytes: file.destination)
        guard let transport = context.transports[endpoint.transport] as? any FolderListing else {
            throw TransferError(
                .unsupported, .unsupported,
                "The transport \"\(endpoint.transport)\" can't list folders, so it can't download \(path). Add the files in it one by one.")
        }
        try transport.validateListing(at: endpoint)
        announce(endpoint)
        history.attempts += 1
        history.lastEndpoint = endpoint
        let activity = EndpointActivity(context: context, record: record, endpoint: endpoint)
        let catalogue = try await listing.begin()
        let active = context.live.begin(position: file.position, size: nil, knownSize: nil, countedBytes: 0, stored: 0)
        defer { context.live.end(active, confirmed: 0) }
        let attempt = ListingAttempt(
            endpoint: endpoint, remotePath: path, resolvesLinks: listing.resolvesLinks, options: AttemptOptions(context.options),
            origin: AttemptOrigin(session: "\(context.id)", context: context.live.context, account: availability.account.name),
            credentials: context.credentials, logger: context.logger)
        let task = Task {
            try await transport.list(attempt) { entries in
                activity.confirmed()
                // Comes before `noteWork`, so that an attempt ends as stalled if its transport ignores this error and continues.
                try await catalogue.throwIfFailed()
                active.noteWork()
                try await catalogue.receive(entries)
                active.noteWork()
            }
        }
        active.whenStalled { task.cancel() }
        do {
            try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
            activity.confirmed()
            try await catalogue.finish()
        } catch {
            history.hasConfirmed = activity.hasConfirmed
            let stall = Self.stallError(
                of: active, activity, "The listing of \(path) stalled: \(endpoint.location) sent no entries for too long.")
            throw await failure(error, of: catalogue, active, stall, at: endpoint)
        }
    }

    /// Returns the error to throw for a failed listing.
    ///
    /// - Parameter stall: The error for a listing that stalled.
    private func failure(
        _ error: any Error, of catalogue: FolderCatalogue, _ active: ActiveFile, _ stall: TransferError, at endpoint: Endpoint
    ) async -> any Error {
        // The transport may have replaced the catalogue's error with its own error.
        if let own = await catalogue.ownFailure { return own is CancellationError && !Task.isCancelled ? stall : own }
        switch error {
        case is CancellationError where Task.isCancelled: return CancellationError()
        case is CancellationError where active.isStalled: return stall
        case let error as TransferError where [.resumeLost, .sourceChanged, .sourceLost].contains(error.failureClass):
            // These errors concern the content of a file, but a listing has no such content.
            return TransferError(.protocolViolation, error.code, error.message, cause: error.cause)
        case is TransferError, is QueueError: return error
        default:
            return TransferError(
                .transient, .internalFailure, "The transport \"\(endpoint.transport)\" failed with an unknown error.",
                cause: "\(error)")
        }
    }
}
