/// What a running attempt tells the queue.
///
/// Every method may be called from any thread.
public struct AttemptReporter: Sendable {
    private let reportProgress: @Sendable (_ sent: Int64, _ confirmed: Int64) -> Void
    private let saveCheckpoint: @Sendable (Checkpoint) async throws -> Void
    private let askAllowance: @Sendable (Int) -> Allowance
    private let reportTotal: @Sendable (Int64) -> Void
    private let tellOfActivity: @Sendable () -> Void
    private let tellOfRecord: @Sendable () -> Void
    private let tellOfWait: @Sendable () -> Void
    private let tellOfAnswer: @Sendable () -> Void

    /// Makes a reporter; called by the queue and by tests of transports.
    ///
    /// - Parameters:
    ///   - progress: Must not block: transports call it from inside a C library's loop.
    ///   - checkpoint: Returns once the checkpoint is durable.
    ///   - allowance: Must not block.
    ///   - total: Must not block.
    ///   - activity: Must not block.
    ///   - record: Must not block.
    ///   - wait: Must not block.
    ///   - answer: Must not block.
    public init(
        progress: @escaping @Sendable (_ sent: Int64, _ confirmed: Int64) -> Void,
        checkpoint: @escaping @Sendable (Checkpoint) async throws -> Void,
        allowance: @escaping @Sendable (_ limit: Int) -> Allowance = { Allowance(bytes: $0) },
        total: @escaping @Sendable (Int64) -> Void = { _ in },
        activity: @escaping @Sendable () -> Void = {},
        record: @escaping @Sendable () -> Void = {},
        wait: @escaping @Sendable () -> Void = {},
        answer: @escaping @Sendable () -> Void = {}
    ) {
        reportProgress = progress
        saveCheckpoint = checkpoint
        askAllowance = allowance
        reportTotal = total
        tellOfActivity = activity
        tellOfRecord = record
        tellOfWait = wait
        tellOfAnswer = answer
    }

    /// Tells how far the file is. Cheap and lossy: call it as often as bytes move.
    ///
    /// Confirmed bytes are reported after the ``save(_:)`` that vouches for them, where the transport needs one to find them again.
    ///
    /// - Parameters:
    ///   - sent: The position in the file up to which the network took bytes, or, of a download, brought them.
    ///   - confirmed: The position up to which the other end confirmed, at most `sent` at the end of an attempt. Of a download: up to which the
    ///     bytes are synced to the disk.
    public func report(sent: Int64, confirmed: Int64) {
        reportProgress(sent, confirmed)
    }

    /// Tells how many bytes a download has, as soon as the server said so, and again if that changes. Uploads are known without.
    public func report(total: Int64) {
        reportTotal(total)
    }

    /// Tells that the attempt works on something that moves no bytes, such as the checksum of a large file; say so every few seconds, as the
    /// queue ends an attempt that it takes for stalled.
    public func reportActivity() {
        tellOfActivity()
    }

    /// Reports that the server performed a request that needed the account's credentials, such as a login or a question about an earlier upload. The
    /// endpoint works, so other sessions may use it. Not needed once bytes are confirmed.
    public func reportAnswer() {
        tellOfAnswer()
    }

    /// Tells that all that one request brings was sent, and the other end's answer is awaited: until something moves again, the response timeout
    /// counts instead of the stall timeout. After the last byte of a file above 1 MiB that is so without this call, but not after
    /// ``reportActivity()``.
    public func reportWaiting() {
        tellOfWait()
    }

    /// Tells that the other end keeps a record of each attempt that succeeds, as the handler of a form may: then no other file takes this one's place
    /// before it is stored that it has arrived. A process that is killed before that sends it once more. Said before the attempt ends.
    public func reportRecord() {
        tellOfRecord()
    }

    /// Makes a checkpoint durable, and returns when it is.
    ///
    /// - Throws: When it can't be stored; the transport then ends its attempt with that error.
    public func save(_ checkpoint: Checkpoint) async throws {
        try await saveCheckpoint(checkpoint)
    }

    /// How many of the next `limit` bytes may be moved now under the rate limits in force. Asked before each write or read.
    public func allowance(upTo limit: Int) -> Allowance {
        askAllowance(limit)
    }
}

/// An answer of the rate limits.
public struct Allowance: Hashable, Sendable {
    /// How many bytes may be moved now; 0 means none before ``retryAfter``.
    public var bytes: Int

    /// When ``bytes`` is 0, how long to wait before asking again.
    public var retryAfter: Duration

    /// Makes an answer.
    public init(bytes: Int, retryAfter: Duration = .zero) {
        self.bytes = bytes
        self.retryAfter = retryAfter
    }
}
