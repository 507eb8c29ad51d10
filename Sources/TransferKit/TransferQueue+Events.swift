import TransferCore

extension TransferQueue {
    /// What happens from now on. Every use makes a new subscription; any number may exist.
    public nonisolated var events: QueueEvents {
        hub.subscribe()
    }
}
