/// Transfers the bytes of files to and from one kind of server.
///
/// A transport is responsible for moving bytes, negotiating offsets, and managing its connections. The queue is responsible for sessions, order,
/// retries, rate limits, stall detection and storage. A transport is therefore small, and keeps no state of a file between attempts. Such state
/// belongs in a ``Checkpoint``.
///
/// An app registers a transport when it opens a queue. The transport serves all endpoints with its ``id``. The queue uses the value that
/// ``makeInstance()`` returns, so an app can register one value with several queues.
public protocol Transport: Sendable {
    /// The transport's ID in stored accounts and checkpoints. Never change it after a release.
    var id: TransportID { get }

    /// The initial number of small files that a session transfers at the same time, unless the session sets its own number. 1 to 64; 6 by
    /// default. The queue then adapts the number to the rate, up to ``maximumSmallFilesInFlight``.
    ///
    /// A small file is at most 1 MiB in size, and spends most of its time waiting for responses. Use a high number if a connection can carry many
    /// concurrent requests. Larger files are transferred one at a time. The queue reads this property on its executors, once per run and endpoint.
    var smallFilesInFlight: Int { get }

    /// The maximum number of small files that a session transfers at the same time, unless the session sets its own number. 1 to 64;
    /// ``smallFilesInFlight`` by default, so that the number does not change.
    var maximumSmallFilesInFlight: Int { get }

    /// The number of small files to prepare in addition to the files in flight, 0 to 64; 0 by default.
    ///
    /// Use a number above 0 if the transport saves a checkpoint before the first request of each file: the checkpoints of later files are then
    /// stored while earlier files are sent. The first ``AttemptReporter/save(_:)`` of an upload returns once the checkpoint is durable and the number
    /// of files with requests in flight is below the queue's current limit.
    var smallFilesAhead: Int { get }

    /// Returns the transport that one queue uses; `self` by default.
    ///
    /// A queue calls this method once while it opens. It then uses only the returned value, and shuts this value down when the queue ends. A
    /// transport that keeps connections, threads or caches returns a value with the same configuration and new resources. Two queues then share
    /// nothing, and the registered value stays usable after a queue was shut down. Until its first attempt, the returned value must not own
    /// resources that need ``shutdown()``.
    ///
    /// The default is right for a transport without such resources, and for a transport whose instances must share them. A transport that uses the
    /// default must stay usable after ``shutdown()``.
    func makeInstance() -> Self

    /// Transfers the bytes of one file, starting at `attempt.checkpoint`.
    ///
    /// The queue calls this method on a separate task for each file in flight.
    ///
    /// **Errors.** Throw a ``TransferError`` with the class of the failure. Don't retry: the queue retries, depending on the class. An error of
    /// another type counts as ``FailureClass/transient``.
    ///
    /// **Cancellation.** When the task is cancelled, stop within 100 ms and throw `CancellationError`. The queue cancels an attempt when it
    /// interrupts the session, for example for a pause, and when the attempt stalls. The file resumes later from its last checkpoint.
    ///
    /// **Durability.** Before you create or change remote state, save a checkpoint if the next attempt needs it to find that state. A
    /// checkpoint must not cover more bytes than the other end confirmed, or, for a download, than are synced to the disk. If a download
    /// fails, first sync the received bytes and save a checkpoint. A cancelled download may skip this step if it would take too long.
    ///
    /// **The source.** Compare the open file with `attempt.source.identity` before the first and after the last byte, except for a growing
    /// source (``UploadSource/growth``).
    ///
    /// **The destination.** Write only to the part file of `attempt.destination`; see ``DownloadDestination``. Before you use a name from
    /// the server, reduce it to one safe path component.
    ///
    /// - Returns: The receipt. Return it only after the other end has confirmed the last byte. For a download, return it only after the
    ///   file has its final name, and the file and its folder are synced to the disk.
    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt

    /// Releases connections and threads.
    ///
    /// The queue calls this method once, on the value that ``makeInstance()`` returned, after all attempts have ended. An attempt that does not
    /// end within 30 s of its interruption may still be running. The queue also waits at most 30 s for this method.
    func shutdown() async
}

extension Transport {
    /// Returns 6.
    public var smallFilesInFlight: Int { 6 }

    /// Returns ``smallFilesInFlight``.
    public var maximumSmallFilesInFlight: Int { smallFilesInFlight }

    /// Returns 0.
    public var smallFilesAhead: Int { 0 }

    /// Returns the transport itself.
    public func makeInstance() -> Self { self }
}
