/// Operations on a session by its handle. Each operation throws the errors of the queue's method of the same name.
extension TransferSession: SessionReferenceConvertible {
    /// The session's ID, as a reference.
    public var reference: SessionReference { .id(id) }

    /// Runs the session now; see ``ControllableQueue/run(_:again:)``.
    public func run(again: Bool = false) async throws { try await queue.run(id, again: again) }

    /// Makes the session the next to start; see ``ControllableQueue/runNext(_:)``.
    public func runNext() async throws { try await queue.runNext(id) }

    /// Pauses the session, which keeps its slot; see ``ControllableQueue/pause(_:)``.
    ///
    /// - Returns: The new state: paused, or held if the session was waiting.
    @discardableResult
    public func pause() async throws -> SessionState { try await queue.pause(id) }

    /// Resumes the session after a pause or a hold; see ``ControllableQueue/resume(_:)``.
    public func resume() async throws { try await queue.resume(id) }

    /// Holds the session; see ``ControllableQueue/hold(_:)``.
    public func hold() async throws { try await queue.hold(id) }

    /// Releases the session after a hold; see ``ControllableQueue/release(_:)``.
    public func release() async throws { try await queue.release(id) }

    /// Yields the session's slot to another session; see ``ControllableQueue/yield(_:)``.
    public func yield() async throws { try await queue.yield(id) }

    /// Cancels the session; see ``ControllableQueue/cancel(_:discarding:)``.
    public func cancel(discarding: Bool = false) async throws { try await queue.cancel(id, discarding: discarding) }

    /// Retries the session after it failed or was cancelled; see ``ControllableQueue/retry(_:)``.
    public func retry() async throws { try await queue.retry(id) }

    /// Moves the session; see ``ControllableQueue/move(_:to:)``.
    public func move(to destination: MoveDestination) async throws { try await queue.move(id, to: destination) }

    /// Adds the session, which is a draft, to the queue; see ``ControllableQueue/enqueue(draft:to:held:)``.
    public func enqueue(to destination: MoveDestination = .end, held: Bool = false) async throws {
        try await queue.enqueue(draft: id, to: destination, held: held)
    }

    /// Changes properties of the session; see ``ControllableQueue/update(_:_:)``.
    public func update(_ update: SessionUpdate) async throws { try await queue.update(id, update) }

    /// Removes the session; see ``ControllableQueue/remove(_:isForced:)``.
    public func remove(isForced: Bool = false) async throws { try await queue.remove(id, isForced: isForced) }

    /// Adds items at the end of the session; see ``TransferQueue/addItems(_:to:)``.
    public func addItems(_ items: [TransferItem]) async throws { try await queue.addItems(items, to: reference) }

    /// Replaces or removes items that have not begun; see ``ControllableQueue/replaceItems(_:with:in:)``.
    public func replaceItems(_ selection: ItemSelection, with items: [TransferItem]) async throws {
        try await queue.replaceItems(selection, with: items, in: reference)
    }
}
