import Dispatch

/// An executor for an actor that blocks on disk access. Runs the actor outside the cooperative thread pool, whose threads must never block.
final class DiskExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "transferkit.disk-actor")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
