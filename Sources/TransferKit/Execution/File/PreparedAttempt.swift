import Locking
import Synchronization
import TransferCore

struct PreparedAttempt: Sendable {
    let attempt: FileAttempt
    /// The identity of the source file; nil for a download or a form.
    let identity: SourceIdentity?
    let stream: StreamSpool?
    let transport: any Transport
    let active: ActiveFile
    /// The last checkpoint that the transport saved, in this attempt or an earlier one; nil if there is no checkpoint.
    let saved: Locked<StoredCheckpoint?>
    /// The number of failures reported for the endpoint before this attempt.
    let failuresBefore: Int
    /// The task that stores the part file's checkpoint, which must be durable before the attempt begins; nil if nothing needs to be stored.
    let preparation: Task<Void, any Error>?
    let activity: EndpointActivity

    var endpoint: Endpoint { attempt.endpoint }
}

/// Records the activity of an attempt. Reports that the endpoint works, unless an attempt has already reported this since the endpoint's
/// last reported failure. The transport's threads call the methods each time bytes move.
final class EndpointActivity: Sendable {
    private let context: RunContext
    private let record: EndpointRecord
    private let endpoint: Endpoint
    private let liveness: EndpointState
    private let wasConfirmed = Atomic(false)
    private let wasServed = Atomic(false)

    init(context: RunContext, record: EndpointRecord, endpoint: Endpoint) {
        self.context = context
        self.record = record
        self.endpoint = endpoint
        liveness = context.endpoints.of(endpoint)
    }

    /// Whether the other end confirmed or delivered content: bytes of a file, or entries of a folder.
    var hasConfirmed: Bool { wasConfirmed.load(ordering: .relaxed) }

    /// Whether the other end confirmed or delivered content, or performed a request that needed the account's credentials.
    var hasServed: Bool { hasConfirmed || wasServed.load(ordering: .relaxed) }

    /// The number of bytes that an attempt must send to show that its endpoint works, even before the endpoint responds. Network buffers
    /// usually hold fewer bytes.
    private static let maximumBuffered: Int64 = 1 << 20

    /// Records the total number of bytes that the network accepted in this attempt.
    func sent(_ bytes: Int64) {
        connected()
        if bytes >= Self.maximumBuffered { reportActivity() }
    }

    func confirmed() {
        connected()
        if !wasConfirmed.load(ordering: .relaxed), !wasConfirmed.exchange(true, ordering: .relaxed) {
            context.endpoints.authenticated(endpoint)
            record.recordResponse(of: endpoint)
        }
        liveness.responded()
        reportActivity()
    }

    /// Records that the other end performed a request that needed the account's credentials. The endpoint works, even if no bytes of the
    /// file moved.
    func served() {
        wasServed.store(true, ordering: .relaxed)
        liveness.responded()
        reportActivity()
    }

    private func connected() {
        context.live.connect { context.post(.connected) }
    }

    private func reportActivity() {
        if liveness.noteActivity() { context.post(.endpointWorks(endpoint)) }
    }
}

extension AttemptOptions {
    /// The transport options for a session's current options.
    ///
    /// - Parameters:
    ///   - uploadURL: The item's upload URL.
    ///   - creationURL: The item's creation URL; nil for the creation URL of the session.
    init(_ options: SessionOptions, uploadURL: Capability? = nil, creationURL: Capability? = nil) {
        self.init(
            metadata: options.metadata, headers: options.headers, verification: options.verification, creation: options.creation,
            chunkSize: options.chunkSize, segmentsPerFile: options.segmentsPerFile, overwrite: options.overwrite,
            uploadURL: uploadURL?.text, creationURL: creationURL?.text ?? options.creationURL,
            expectedChecksum: options.expectedChecksum, settings: options.settings)
    }
}
