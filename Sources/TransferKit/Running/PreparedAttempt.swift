import Locking
import Synchronization
import TransferCore

/// An attempt that is ready to begin.
struct PreparedAttempt: Sendable {
    let attempt: FileAttempt
    /// Of the file that is sent; nil of a download.
    let identity: SourceIdentity?
    let stream: StreamSpool?
    let transport: any Transport
    let active: ActiveFile
    /// What the transport has saved so far.
    let saved: Locked<StoredCheckpoint?>
    /// How many failures of the endpoint were told before.
    let failuresBefore: Int
    /// What has to be durable before the attempt begins.
    let preparation: Task<Void, any Error>?
    let signs: SignsOfLife

    var endpoint: Endpoint { attempt.endpoint }
}

/// Tells that an attempt's endpoint answers: once, and again after each failure that was told of it. Called from a transport's threads, as often
/// as bytes move.
final class SignsOfLife: Sendable {
    private let context: RunContext
    private let record: EndpointRecord
    private let endpoint: Endpoint
    private let liveness: EndpointLiveness
    private let wasSeen = Atomic(false)
    private let wasServed = Atomic(false)

    init(context: RunContext, record: EndpointRecord, endpoint: Endpoint) {
        self.context = context
        self.record = record
        self.endpoint = endpoint
        liveness = context.liveEndpoints.of(endpoint)
    }

    /// Whether the other end confirmed anything.
    var hasAnswered: Bool { wasSeen.load(ordering: .relaxed) }

    /// Whether the other end confirmed anything, or performed a request that needed the account's credentials.
    var hasServed: Bool { hasAnswered || wasServed.load(ordering: .relaxed) }

    /// So many bytes without an answer are a sign of life: the buffers on the way hold no more.
    private static let mostBuffered: Int64 = 1 << 20

    /// The network took bytes, in this attempt so many until now.
    func sent(_ bytes: Int64) {
        connected()
        if bytes >= Self.mostBuffered { works() }
    }

    /// The other end confirmed something.
    func answered() {
        connected()
        if !wasSeen.load(ordering: .relaxed), !wasSeen.exchange(true, ordering: .relaxed) {
            context.proven.insert(endpoint)
            record.works(endpoint)
        }
        liveness.answered()
        works()
    }

    /// The other end performed a request that needed the account's credentials: the endpoint works, though nothing of the file may have moved.
    func served() {
        wasServed.store(true, ordering: .relaxed)
        liveness.answered()
        works()
    }

    private func connected() {
        context.live.connect { context.post(.connected) }
    }

    private func works() {
        if liveness.noteSign() { context.post(.endpointWorks(endpoint)) }
    }
}

extension AttemptOptions {
    /// What a session asks of a transport, as things are now.
    init(_ options: SessionOptions, uploadURL: Capability? = nil) {
        self.init(
            metadata: options.metadata, headers: options.headers, verification: options.verification, creation: options.creation,
            chunkSize: options.chunkSize, parallel: options.parallel, overwrite: options.overwrite, uploadURL: uploadURL?.text,
            expectedChecksum: options.expectedChecksum, settings: options.settings)
    }
}
