import TransferCore

extension TransferQueue {
    /// What happens from now on. Every use makes a new subscription; any number may exist, and none slows the queue.
    public nonisolated var events: QueueEvents {
        hub.subscribe()
    }

    /// The number of the last event; one that was told of, not one that may come of what is being stored right now.
    public nonisolated var revision: UInt64 { hub.revision }

    /// What happened after an event, from the change log, and then what happens from now on, without loss or doubling where they meet.
    ///
    /// For a reader that comes back: over restarts of the process too. What the log no longer holds (``QueueConfiguration/changeLogLimit``) is
    /// told as a ``QueueEvent/Kind/gap(from:to:)``; read the present state then. Figures are never stored. Every use makes a new subscription.
    ///
    /// - Parameter revision: The last event that the reader knows; 0 for all that the log holds.
    public nonisolated func events(since revision: UInt64) -> QueueEvents {
        hub.subscribe(after: revision, in: store)
    }

    /// Lets a delegate know of everything from now on, in place of the one before; with nil nobody.
    ///
    /// The delegate is held weakly. Its methods are called one after the other, in the order of the events, until ``shutdown()``: the last event
    /// still comes, after `shutdown` may have returned, as a delegate may well call that itself. One that was replaced is called no more, except
    /// for the method that it is in at that moment; the new one waits for its end.
    public nonisolated func setDelegate(_ delegate: (any TransferQueueDelegate)?) {
        delivery.start(delegate, of: self, events: hub.subscribe())
    }

    /// Keeps the queue until its delegate knows of the end: its methods name the queue.
    nonisolated func keepForDelegate() {
        Task { await delegateIsDone() }
    }

    /// Returns when the delegate of a queue that was shut down knows of the end.
    package nonisolated func delegateIsDone() async {
        await delivery.finish()
    }
}
