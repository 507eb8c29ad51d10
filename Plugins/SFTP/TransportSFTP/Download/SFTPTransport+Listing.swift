public import TransferCore

extension SFTPTransport: FolderListing {
    /// Lists one folder, some hundred names at a time, as the server sends them.
    ///
    /// The kind of an entry is that from the server's listing, as from `lstat`; missing attributes are requested. Called by the queue, on a
    /// task of its own.
    ///
    /// - Throws: A `TransferError`; `CancellationError`; the error of `receive`.
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
