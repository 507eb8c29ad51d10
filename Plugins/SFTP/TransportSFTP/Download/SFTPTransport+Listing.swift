public import TransferCore

extension SFTPTransport: FolderListing {
    /// Lists one folder, some hundred names at a time, as the server sends them.
    ///
    /// What an entry is, the server says of itself, as `lstat` does; of each that it says nothing of, it is asked. Called by the queue, on a task
    /// of its own.
    ///
    /// - Throws: A `TransferError`; `CancellationError`; what `receive` throws.
    public func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
        let settings = try EndpointSettings(attempt.endpoint)
        try await pool.use(
            attempt.endpoint, atMost: settings.maximumConnections, credentials: attempt.credentials, logger: attempt.logger
        ) { connection in
            _ = try await connection.client.features()
            try await SFTPListing(attempt, settings, over: connection, receive: receive).run()
        }
    }
}
