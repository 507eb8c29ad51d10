/// Transfers the bytes of files to and from one kind of server.
///
/// A transport is responsible for the byte loop, the negotiation of offsets, and its connections. The queue is responsible for sessions, order, retries,
/// rate limits, stall detection and storage. So a transport is small, and stateless between attempts: state of a file belongs in a ``Checkpoint``.
///
/// An app registers a transport by value when it opens a queue. It serves all accounts with its ``id``. The queue uses the value that
/// ``makeInstance()`` returns, so one value can be registered with several queues.
public protocol Transport: Sendable {
    /// The name in the store. Never change it after a release.
    var id: TransportID { get }

    /// The number of small files in flight for a session without a setting of its own, 1 to 64; six by default.
    ///
    /// A small file has at most 1 MiB, and spends most of its time waiting for responses. Use a high number if a connection carries many concurrent
    /// requests. Larger files are transferred one at a time. The queue reads this on its executors whenever it starts a file.
    var smallFilesInFlight: Int { get }

    /// The number of additional small files to prepare, 0 to 64; none by default.
    ///
    /// For a transport that saves a checkpoint for each file before its first request. The first ``AttemptReporter/save(_:)`` of a file returns when the
    /// checkpoint is durable and it is the file's turn, so that at most ``smallFilesInFlight`` files send requests. The queue reads this whenever it
    /// reads that property.
    var smallFilesAhead: Int { get }

    /// Returns the transport that one queue uses; `self` by default.
    ///
    /// A queue calls this method once while it opens, on its own executor. It then uses only the returned value, and shuts it down at its end. A
    /// transport that keeps connections, threads or caches returns a value with the same configuration and new resources. Two queues then share nothing,
    /// and the registered value stays usable after a queue was shut down. Until its first attempt, the returned value must not own resources that need
    /// ``shutdown()``.
    ///
    /// The default is right for a transport without such resources, or one whose instances must share them. Such a transport must stay usable
    /// after ``shutdown()``.
    func makeInstance() -> Self

    /// Transfers the bytes of one file, from `attempt.checkpoint` on.
    ///
    /// The queue calls it on a task of its own, with one attempt for each file in flight.
    ///
    /// **Errors.** Throw a ``TransferError`` with the class of the failure. Don't retry: the queue retries, depending on the class. An error of another
    /// type counts as ``FailureClass/transient``.
    ///
    /// **Cancellation.** When the task is cancelled, stop within 100 ms and throw `CancellationError`. The queue cancels to pause, to stop, and when
    /// the attempt stalls; the file resumes later from its last checkpoint.
    ///
    /// **Durability.** Save a checkpoint before an effect that the next attempt can't find without it. Never save one that covers more bytes than the
    /// other end confirmed, or, for a download, than are synced to the disk. Before a download ends early, sync the received bytes and save a checkpoint,
    /// unless it is cancelled and that would take too long.
    ///
    /// **The source.** Compare the open file with `attempt.source.identity` before the first and after the last byte.
    ///
    /// **The destination.** Write only to the part file of `attempt.destination`; see ``DownloadDestination``. Never use a name from a server.
    ///
    /// - Returns: The receipt, once the other end confirmed the last byte; for a download, once the file has its name and both are synced.
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
