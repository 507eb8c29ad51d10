public import TransferCore

extension SFTPTransport: FolderListing {
    /// Lists a folder, at most 100 entries at a time, in the server's order, without `.` and `..`.
    ///
    /// The kind of an entry comes from the server's listing, or from an additional request if the listing omits it. A link is listed as a
    /// link, unless it leads to a regular file and the attempt resolves links. The queue calls this method on a separate task.
    ///
    /// - Throws: A `TransferError`, `CancellationError`, or the error of `receive`.
    public func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
        let server = try SFTPServer(attempt.endpoint)
        try await pool.use(
            attempt.endpoint, atMost: server.options.maxConnections, credentials: attempt.credentials, logger: attempt.logger
        ) { connection in
            _ = try await connection.client.features()
            try await SFTPListing(attempt, server, over: connection, receive: receive).run()
        }
    }
}
