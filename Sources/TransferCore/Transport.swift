/// Moves the bytes of files to one kind of server.
///
/// A transport owns the byte loop, the negotiation of offsets and its connections. Everything else — sessions, order, retries, rate limits,
/// the stall watch, persistence — is the queue's, so a transport is small and stateless between attempts: what it must remember of a file
/// goes into a ``Checkpoint``.
///
/// A transport is registered by value when a queue opens, and serves all accounts that name its ``id``. The queue uses the value that
/// ``makeInstance()`` returns, so one value can be registered with several queues.
public protocol Transport: Sendable {
    /// The name written to the store; never changed once released.
    var id: TransportID { get }

    /// How many small files of a session are best in flight at once where the session does not say, 1 to 64; six by default.
    ///
    /// A small file has 1 MiB at most, and its time goes into waiting for answers: a transport whose connection carries many requests at once
    /// wants many. Larger files go one at a time, whatever this is. Read on executors of the queue each time that a file is to start.
    var smallFilesInFlight: Int { get }

    /// How many small files more may be prepared meanwhile, 0 to 64; none by default.
    ///
    /// For a transport that saves a checkpoint of each file before it asks for anything: the first ``AttemptReporter/save(_:)`` of a file returns
    /// when the checkpoint is durable and it is the file's turn, so that no more than ``smallFilesInFlight`` begin to ask. Read as that is.
    var smallFilesAhead: Int { get }

    /// Returns the transport that one queue uses; `self` by default.
    ///
    /// A queue calls this method once while it opens, on its own executor. The queue then uses the returned value only, and shuts it down at its
    /// end. A transport that keeps connections, threads or caches returns a value of its own configuration with new ones. Two queues then share
    /// nothing, and a value stays usable after a queue that it was registered with was shut down. The returned value must hold nothing that needs
    /// ``shutdown()`` until its first attempt.
    ///
    /// The default is right for a transport without such resources, or one whose instances must share them. Such a transport must stay usable
    /// after ``shutdown()``.
    func makeInstance() -> Self

    /// Moves the bytes of one file, from `attempt.checkpoint` on.
    ///
    /// The queue calls it from a task of its own, with as many attempts at once as files are in flight.
    ///
    /// **Errors.** Throw a ``TransferError`` whose class says what kind of failure it is. Don't retry inside: the queue does, by class. An
    /// error of another type counts as ``FailureClass/transient``.
    ///
    /// **Cancellation.** When the task is cancelled, stop within 100 ms and throw `CancellationError`. The queue cancels to pause, to stop
    /// and when the attempt stalled; the file goes on later from the last checkpoint.
    ///
    /// **Durability.** Save a checkpoint before an effect that can't be found again without it. Never save one that claims more than the other
    /// end confirmed, or, of a download, than is synced to the disk. A download that ends early syncs what arrived and saves a checkpoint of it
    /// first, unless it is cancelled and that would take too long.
    ///
    /// **The source.** Compare the open file with `attempt.source.identity` before the first and after the last byte.
    ///
    /// **The destination.** Write to the part of `attempt.destination`, and nowhere else; see ``DownloadDestination``. Never use a name that a
    /// server tells.
    ///
    /// - Returns: The receipt, once the other end confirmed the last byte; of a download, once the file has its name and both are synced.
    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt

    /// Releases connections and threads.
    ///
    /// The queue calls it once on its instance, after the last attempt; see ``makeInstance()``.
    func shutdown() async
}

extension Transport {
    /// Six.
    public var smallFilesInFlight: Int { 6 }

    /// None.
    public var smallFilesAhead: Int { 0 }

    /// The transport itself.
    public func makeInstance() -> Self { self }
}
