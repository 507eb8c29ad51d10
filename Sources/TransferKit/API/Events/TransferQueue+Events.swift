import TransferCore

extension TransferQueue {
    /// The events published from now on. Each access creates a new subscription. Any number of subscriptions can exist, and none of them slows the
    /// queue.
    public nonisolated var events: QueueEvents {
        hub.subscribe()
    }

    /// The number of the last published event. The change that the event reports is durable.
    public nonisolated var revision: UInt64 { hub.revision }

    /// Returns the events after a revision from the change log, followed by live events, without duplicates.
    ///
    /// Use it to continue after an interruption, including a restart of the process. A ``QueueEvent/Kind/gap(from:to:)`` replaces events
    /// that the log no longer contains (``QueueConfiguration/changeLogLimit``). After a gap, read the current state. The log does not
    /// contain unstored events; see ``QueueEvent/revision``. Each call creates a new subscription.
    ///
    /// - Parameter revision: The revision of the last event that the reader received; 0 for all events of the log.
    public nonisolated func events(since revision: UInt64) -> QueueEvents {
        hub.subscribe(after: revision, in: store, clientReads)
    }

    /// The same events as ``events(since:)``, as the stream that ``ControllableQueue`` requires.
    public nonisolated func eventStream(since revision: UInt64) -> AsyncThrowingStream<QueueEvent, any Error> {
        AsyncThrowingStream(events(since: revision))
    }

    /// Sets the delegate for all later events, replacing the previous delegate; nil for none.
    ///
    /// The queue keeps a weak reference to the delegate. It calls the event methods one at a time, in the order of the events. The last
    /// events may arrive after ``shutdown()`` has returned: a delegate method may call `shutdown`, so `shutdown` does not wait for the
    /// delegate. If a method of a replaced delegate is in progress, the new delegate's first call waits until that method returns.
    public nonisolated func setDelegate(_ delegate: (any TransferQueueDelegate)?) {
        delivery.start(delegate, of: self, events: hub.subscribe(), logger: configuration.logger)
    }

    /// Keeps the queue alive until its delegate has received the last event, because the queue is a parameter of the delegate's methods.
    nonisolated func keepAliveForDelegate() {
        Task { await waitForDelegate() }
    }

    /// Waits until the delegate has received the last event. Call it after ``shutdown()``.
    package nonisolated func waitForDelegate() async {
        await delivery.finish()
    }
}

extension AsyncThrowingStream<QueueEvent, any Error> {
    /// Creates a stream from a sequence. The stream takes an event only when the consumer requests one, so the pending events of a slow consumer
    /// stay in the sequence's buffer.
    package init<Events: AsyncSequence & Sendable>(_ events: Events) where Events.Element == QueueEvent {
        let iterator = SharedIterator(events.makeAsyncIterator())
        self.init(unfolding: { try await iterator.next() })
    }
}

/// An iterator that several tasks can use, one after the other.
private actor SharedIterator<Events: AsyncIteratorProtocol> where Events.Element == QueueEvent {
    private var iterator: Events?

    init(_ iterator: sending Events) { self.iterator = iterator }

    func next() async throws -> QueueEvent? {
        guard var current = iterator.take() else { return nil }
        let event = try await current.next(isolation: #isolation)
        iterator = current
        return event
    }
}
