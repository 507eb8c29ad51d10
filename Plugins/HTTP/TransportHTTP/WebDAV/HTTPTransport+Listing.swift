public import TransferCore

extension HTTPTransport: FolderListing {
    /// Checks that an endpoint is the folder of a WebDAV server: its options set ``HTTPOptions/webDAV``, and its address has no placeholders.
    ///
    /// The queue calls this method on its executors and on its callers' executors.
    ///
    /// - Throws: A `TransferError` that names the option.
    public func validateListing(at endpoint: Endpoint) throws(TransferError) { try SessionPlan(endpoint, for: nil).checkListing() }

    /// Lists a folder of a WebDAV server with `PROPFIND` (RFC 4918, section 9.1), in the order of the server, at most 1,000 entries at a time.
    ///
    /// WebDAV does not report symbolic links: a link is listed as its target. The queue calls this method on a separate task.
    ///
    /// - Throws: A `TransferError`, `CancellationError`, or the error of `receive`.
    public func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
        try validateListing(at: attempt.endpoint)
        try await WebDAVListing(attempt, at: try HTTPEndpointClient(attempt, resources: resources), receive: receive).run()
    }
}
