/// What can be done to a session, by its handle. Errors are those of the queue's call of the same name.
extension TransferSession {
    /// Runs it now; see ``TransferQueue/run(_:again:)-(SessionReference,_)``.
    public func run(again: Bool = false) async throws { try await queue.run(id, again: again) }

    /// Lets it be the next that starts; see ``TransferQueue/runNext(_:)-(SessionReference)``.
    public func runNext() async throws { try await queue.runNext(id) }

    /// Interrupts it, with its slot kept; see ``TransferQueue/pause(_:)-(SessionReference)``.
    ///
    /// - Returns: The state that it gets: paused, or held if it was waiting.
    @discardableResult
    public func pause() async throws -> SessionState { try await queue.pause(id) }

    /// Lets it go on after a pause; see ``TransferQueue/resume(_:)-(SessionReference)``.
    public func resume() async throws { try await queue.resume(id) }

    /// Sets it aside; see ``TransferQueue/hold(_:)-(SessionReference)``.
    public func hold() async throws { try await queue.hold(id) }

    /// Lets it wait for its turn again; see ``TransferQueue/release(_:)-(SessionReference)``.
    public func release() async throws { try await queue.release(id) }

    /// Takes its slot for another one; see ``TransferQueue/stop(_:)-(SessionReference)``.
    public func stop() async throws { try await queue.stop(id) }

    /// Ends it; see ``TransferQueue/cancel(_:keepsPartial:)-(SessionReference,_)``.
    public func cancel(keepsPartial: Bool = false) async throws { try await queue.cancel(id, keepsPartial: keepsPartial) }

    /// Lets it wait again after it failed or was cancelled; see ``TransferQueue/retry(_:)-(SessionReference)``.
    public func retry() async throws { try await queue.retry(id) }

    /// Moves it; see ``TransferQueue/move(_:to:)-(SessionReference,_)``.
    public func move(to destination: MoveDestination) async throws { try await queue.move(id, to: destination) }

    /// Changes it; see ``TransferQueue/update(_:_:)-(SessionReference,_)``.
    public func update(_ update: SessionUpdate) async throws { try await queue.update(id, update) }

    /// Adds items behind all that it has; see ``TransferQueue/addItems(_:to:)``.
    public func addItems(_ items: [TransferItem]) async throws { try await queue.addItems(items, to: .id(id)) }
}
