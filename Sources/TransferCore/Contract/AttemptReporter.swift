/// Passes the reports of a running attempt to the queue.
///
/// All methods can be called from any thread.
public struct AttemptReporter: Sendable {
    private let progressHandler: @Sendable (_ sent: Int64, _ confirmed: Int64) -> Void
    private let checkpointHandler: @Sendable (Checkpoint) async throws -> Void
    private let allowanceHandler: @Sendable (Int) -> Allowance
    private let totalHandler: @Sendable (Int64) -> Void
    private let activityHandler: @Sendable () -> Void
    private let recordHandler: @Sendable (RecordReport) async throws -> Void
    private let waitHandler: @Sendable () -> Void
    private let authenticatedResponseHandler: @Sendable () -> Void

    /// Called by ``reportRemainingPartFile(_:)``. Must not block.
    package var remainingPartFileHandler: @Sendable (_ location: String) -> Void = { _ in }

    /// Creates a reporter. For the queue and tests of transports.
    ///
    /// - Parameters:
    ///   - progress: Called by ``report(sent:confirmed:)``. Must not block, because transports call it inside a C library's event loop.
    ///   - checkpoint: Called by ``save(_:)``. Returns once the checkpoint is durable.
    ///   - allowance: Called by ``allowance(upTo:)``. Must not block.
    ///   - total: Called by ``report(total:)``. Must not block.
    ///   - activity: Called by ``reportActivity()``. Must not block.
    ///   - record: Called by ``reportRecord(mayRepeat:)`` and ``reportNoRecord()``. Returns once the report is durable.
    ///   - wait: Called by ``reportWaiting()``. Must not block.
    ///   - answer: Called by ``reportAuthenticatedResponse()``. Must not block.
    public init(
        progress: @escaping @Sendable (_ sent: Int64, _ confirmed: Int64) -> Void,
        checkpoint: @escaping @Sendable (Checkpoint) async throws -> Void,
        allowance: @escaping @Sendable (_ limit: Int) -> Allowance = { Allowance(bytes: $0) },
        total: @escaping @Sendable (Int64) -> Void = { _ in },
        activity: @escaping @Sendable () -> Void = {},
        record: @escaping @Sendable (RecordReport) async throws -> Void = { _ in },
        wait: @escaping @Sendable () -> Void = {},
        answer: @escaping @Sendable () -> Void = {}
    ) {
        progressHandler = progress
        checkpointHandler = checkpoint
        allowanceHandler = allowance
        totalHandler = total
        activityHandler = activity
        recordHandler = record
        waitHandler = wait
        authenticatedResponseHandler = answer
    }

    /// Reports the progress of the file. The call is cheap, and the queue may skip reports, so call this method whenever bytes move.
    ///
    /// If the next attempt can find bytes only through a checkpoint, report these bytes as confirmed only after the ``save(_:)`` that
    /// covers them. For a file with several segments, both values may be the number of bytes in all segments instead of a position.
    ///
    /// - Parameters:
    ///   - sent: The position in the file, in bytes. For an upload, the network has accepted all bytes before this position. For a
    ///     download, all bytes before this position have arrived.
    ///   - confirmed: The position in the file, in bytes, at most `sent` at the end of an attempt. For an upload, the other end has
    ///     confirmed all bytes before this position. For a download, all bytes before this position are synced to the disk.
    public func report(sent: Int64, confirmed: Int64) {
        progressHandler(sent, confirmed)
    }

    /// Reports the size of a download in bytes. Call it as soon as the server reports the size, and again whenever the size changes. Not
    /// needed for uploads.
    public func report(total: Int64) {
        totalHandler(total)
    }

    /// Reports work that moves no bytes, such as the checksum of a large file. Call it every few seconds; otherwise the queue ends the attempt as
    /// stalled.
    public func reportActivity() {
        activityHandler()
    }

    /// Reports that the server performed a request that needed the account's credentials, such as a login or a query about an earlier upload. The
    /// endpoint works, so other sessions may use it. Not needed once bytes are confirmed.
    public func reportAuthenticatedResponse() {
        authenticatedResponseHandler()
    }

    /// Reports that a request was sent completely and its response is pending. Until bytes move again, the longer of the response timeout
    /// and the stall timeout applies. Once the attempt has sent the last byte of a file above 1 MiB, the queue applies this limit without the
    /// call, unless ``reportActivity()`` was called after that byte.
    ///
    /// If an attempt resumes a file whose bytes were all sent before, call this method before each request that may take long, such as a sync
    /// or a concatenation.
    public func reportWaiting() {
        waitHandler()
    }

    /// Reports that the other end creates a record, such as a row in a database, for each successful request, as a form handler may do. Call it
    /// before the request.
    ///
    /// The queue then stores the completion of the file before it starts the next file. If the process is killed before the completion is stored, the
    /// queue sends the file a second time.
    ///
    /// If `mayRepeat` is false, a fleet (a queue of several hosts) does not send the file a second time: the file fails with the code
    /// ``TransferError/Code/outcomeUnknown``. In a fleet, the file also fails with this code if the attempt throws a ``TransferError`` without an
    /// earlier call of ``reportNoRecord()``.
    ///
    /// - Parameter mayRepeat: Whether the file may be sent again although the other end may already have its record.
    /// - Throws: An error if the report can't be stored. Rethrow it to end the attempt.
    public func reportRecord(mayRepeat: Bool = true) async throws {
        try await recordHandler(mayRepeat ? .repeatable : .possible)
    }

    /// Reports that the other end has created no record for the request that ``reportRecord(mayRepeat:)`` announced, for example because the server
    /// rejected the request, or because the connection broke before the last byte was sent.
    ///
    /// - Throws: An error if the report can't be stored. Rethrow it to end the attempt.
    public func reportNoRecord() async throws {
        try await recordHandler(.none)
    }

    /// Reports the part file that a cancelled attempt leaves at the other end. Call this method before you throw `CancellationError`. If the
    /// queue cancelled the attempt because it stalled, the error of the attempt contains `location` as its cause. If a transport throws a
    /// `TransferError` instead, that error must itself name the part file.
    ///
    /// - Parameter location: The kind and the path of the file, for users.
    package func reportRemainingPartFile(_ location: String) {
        remainingPartFileHandler(location)
    }

    /// Stores a checkpoint. Returns when the checkpoint is durable. The first call for a file may also wait for the file's turn; see
    /// ``Transport/smallFilesAhead``.
    ///
    /// - Throws: An error if the checkpoint can't be stored. Rethrow it to end the attempt.
    public func save(_ checkpoint: Checkpoint) async throws {
        try await checkpointHandler(checkpoint)
    }

    /// Returns the number of bytes, up to `limit`, that the rate limits allow now. Call it before each write or read.
    public func allowance(upTo limit: Int) -> Allowance {
        allowanceHandler(limit)
    }
}

/// Whether the other end may have created a record, such as a row in a database, for an attempt.
public enum RecordReport: Sendable {
    /// The other end may have created a record. The file may be sent again.
    case repeatable
    /// The other end may have created a record. The file must not be sent again while the outcome is unknown.
    case possible
    /// The other end has created no record.
    case none
}

/// The number of bytes that the rate limits allow.
public struct Allowance: Hashable, Sendable {
    /// The allowed number of bytes; 0 if no bytes are allowed until ``retryAfter`` has passed.
    public var bytes: Int

    /// The time to wait before calling ``AttemptReporter/allowance(upTo:)`` again, if ``bytes`` is 0.
    public var retryAfter: Duration

    /// Creates an allowance.
    public init(bytes: Int, retryAfter: Duration = .zero) {
        self.bytes = bytes
        self.retryAfter = retryAfter
    }
}
