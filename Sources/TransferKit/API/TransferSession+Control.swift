/// Operations on a session by its handle. Errors are those of the queue's call of the same name.
extension TransferSession {
    /// Runs the session now; see ``TransferQueue/run(_:again:)-(SessionReference,_)``.
    public func run(again: Bool = false) async throws { try await queue.run(id, again: again) }

    /// Makes the session the next to start; see ``TransferQueue/runNext(_:)-(SessionReference)``.
    public func runNext() async throws { try await queue.runNext(id) }

    /// Interrupts the session, which keeps its slot; see ``TransferQueue/pause(_:)-(SessionReference)``.
    ///
    /// - Returns: The new state: paused, or held if the session was waiting.
    @discardableResult
    public func pause() async throws -> SessionState { try await queue.pause(id) }

    /// Resumes the session after a pause; see ``TransferQueue/resume(_:)-(SessionReference)``.
    public func resume() async throws { try await queue.resume(id) }

    /// Sets the session aside; see ``TransferQueue/hold(_:)-(SessionReference)``.
    public func hold() async throws { try await queue.hold(id) }

    /// Puts the session back in line; see ``TransferQueue/release(_:)-(SessionReference)``.
    public func release() async throws { try await queue.release(id) }

    /// Gives the session's slot to another one; see ``TransferQueue/stop(_:)-(SessionReference)``.
    public func stop() async throws { try await queue.stop(id) }

    /// Ends the session; see ``TransferQueue/cancel(_:keepsPartial:)-(SessionReference,_)``.
    public func cancel(keepsPartial: Bool = false) async throws { try await queue.cancel(id, keepsPartial: keepsPartial) }

    /// Puts the session back in line after it failed or was cancelled; see ``TransferQueue/retry(_:)-(SessionReference)``.
    public func retry() async throws { try await queue.retry(id) }

    /// Moves the session; see ``TransferQueue/move(_:to:)-(SessionReference,_)``.
    public func move(to destination: MoveDestination) async throws { try await queue.move(id, to: destination) }

    /// Changes the session; see ``TransferQueue/update(_:_:)-(SessionReference,_)``.
    public func update(_ update: SessionUpdate) async throws { try await queue.update(id, update) }

    /// Adds items after those of the session; see ``TransferQueue/addItems(_:to:)``.
    public func addItems(_ items: [TransferItem]) async throws { try await queue.addItems(items, to: .id(id)) }
}
