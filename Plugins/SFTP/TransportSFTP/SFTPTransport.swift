import Logging
import SSHEngine
public import TransferCore
public import TransportSupport

/// Transfers files to and from SFTP servers, version 3 (draft-ietf-secsh-filexfer-02), with the OpenSSH extensions that the server offers.
///
/// An upload goes into a part file beside its name, `.tq-<transfer>.part`, which is synced and renamed when complete. An interrupted upload
/// resumes after the last byte that the server synced. If the connection broke, it resumes after the last byte that the server
/// acknowledged, if the part file is large enough, its end is the same as here, and the server has synced it. If the server can't sync, the
/// newest bytes of the part file are read back and compared first, unless ``SFTPOptions/sync`` is off. A download resumes if the file on the
/// server still has its size and modification time.
///
/// Checksums (`Verification.checksum`) are computed by `sha256sum`, `shasum` or `md5sum` if the server lets the account run commands;
/// otherwise the file is read back and compared, and the receipt has a warning. They are not available for streams. A checksum that a
/// session names (`AttemptOptions.expectedChecksum`) is verified locally, without asking the server. Make endpoints with `Endpoint.sftp`;
/// ``SFTPOptions`` are their options.
///
/// A value holds the configuration. Each queue makes an instance with connections and threads of its own (``makeInstance()``), so several
/// queues can use one value, at the same time or one after the other.
public struct SFTPTransport: Transport, EndpointValidating, SessionValidating, EndpointChecking, PartialDiscarding, FileNaming {
    /// `sftp`
    public let id: TransportID = .sftp

    /// 64: one connection carries the requests of many files in parallel, each of which needs several responses.
    public let smallFilesInFlight = 64

    /// The C libraries in this process, each with its version.
    public static var libraries: [String] { ["libssh2/\(SSHConnection.libraryVersion)"] }

    /// The documentation of the settings of endpoints, sorted by name.
    public static var settings: [SettingDescription] { SFTPOptions.table.descriptions }

    /// Checks an endpoint without contacting the server: its address, its settings, and the kinds of its credentials.
    ///
    /// For programs that let users enter endpoints; on any executor. An attempt checks the same.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`, or of the class `unsupported`.
    public static func validate(_ endpoint: Endpoint) throws(TransferError) {
        _ = try SFTPServer(endpoint)
    }

    /// Checks a session's options without contacting the server.
    ///
    /// For programs that let users enter sessions; on any executor. An attempt checks the same. Another endpoint of the account may
    /// support what this transport does not.
    ///
    /// - Parameter options: As an attempt gets them.
    /// - Throws: A `TransferError`: of the class `unsupported`, or for an invalid checksum.
    public static func validate(_ options: AttemptOptions) throws(TransferError) {
        _ = try Checksum(expectedBy: options)
        guard options.settings.isEmpty else {
            throw TransferError(.unsupported, .unsupported, "The SFTP transport has no settings for sessions.")
        }
    }

    /// Checks an endpoint when an account is saved. Called by the queue, on its caller's executor.
    public func validate(_ endpoint: Endpoint) throws(TransferError) { try Self.validate(endpoint) }

    /// Checks a session's options when it is enqueued. Called by the queue, on its own and its callers' executors.
    public func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try Self.validate(options)
    }

    /// Returns what happens to two files with one remote name, which depends on the session's overwrite policy.
    public static func nameClash(_ options: AttemptOptions) -> NameClash {
        switch options.overwrite {
        case .rename: .keptApart
        case .never: .refused
        case .skip: .leftOut
        case .always, .different, .newer: .replaced
        }
    }

    /// Returns the same when a session is enqueued. Called by the queue, on its callers' executors.
    public func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash { Self.nameClash(options) }

    let pool: ConnectionPool
    private let makePool: @Sendable () -> ConnectionPool
    private let disks: DiskThreads
    private let failures = UnexplainedFailures()
    private static let logger = Logger(label: "transport-sftp")

    /// Creates a transport. The first attempt starts its threads and connections.
    public init() {
        self.init(policy: PoolPolicy())
    }

    /// Creates a transport that shares its connections by another policy.
    package init(policy: PoolPolicy) {
        self.init(makePool: { ConnectionPool(SSHConnector(), policy: policy) }, disks: DiskThreads(limit: 4))
    }

    /// Creates a transport with another connector and the caller's threads.
    package init(connector: any SFTPConnector, policy: PoolPolicy = PoolPolicy(), disks: DiskThreads = DiskThreads(limit: 4)) {
        self.init(makePool: { ConnectionPool(connector, policy: policy) }, disks: disks)
    }

    private init(makePool: @escaping @Sendable () -> ConnectionPool, disks: DiskThreads) {
        self.makePool = makePool
        pool = makePool()
        self.disks = disks
    }

    /// Returns a transport with the same configuration and with connections and threads of its own. Called by each queue that opens with
    /// this transport.
    public func makeInstance() -> SFTPTransport {
        SFTPTransport(makePool: makePool, disks: disks)
    }

    /// Sends or receives one file.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, after a checkpoint was saved for the received or sent bytes; or `CancellationError`.
    public func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        do {
            let receipt = try await move(attempt, reporting: reporter)
            failures.forget(attempt)
            return receipt
        } catch let failure as UnexplainedFailure {
            throw failures.error(for: failure, of: attempt)
        } catch {
            failures.forget(attempt)
            throw error
        }
    }

    private func move(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try Self.validate(attempt.options)
        let server = try SFTPServer(attempt.endpoint)
        let others = ConnectionLender(
            prepare: { [pool] count in
                await pool.prepare(
                    count, to: attempt.endpoint, atMost: server.options.maxConnections, credentials: attempt.credentials,
                    logger: attempt.logger)
            }, lend: { body in try await use(attempt, server, preferringUnused: true, reporter, body) })
        switch attempt.payload {
        case .upload(let source):
            guard attempt.options.expectedChecksum == nil else {
                throw TransferError(.unsupported, .unsupported, "An expected checksum is only for downloads.")
            }
            guard source.growth == nil || attempt.options.verification != .checksum else {
                // The confirmed bytes may be gone from the disk when the checksum is computed.
                throw TransferError(.unsupported, .unsupported, "The SFTP transport can't compare checksums of streams.")
            }
            // Checked before a connection is made, which can take a while.
            let threads = disks.threads(for: source)
            let file = try await FileReader.open(source, on: threads)
            return try await use(attempt, server, reporter) { connection, features in
                try await SFTPUpload(
                    attempt, server, over: connection, features, others: others, from: file, on: threads, reporting: reporter
                ).run()
            }
        case .download(let destination):
            let threads = disks.threads(for: destination)
            return try await use(attempt, server, reporter) { connection, features in
                try await SFTPDownload(
                    attempt, server, over: connection, features, others: others, on: threads, reporting: reporter
                ).run()
            }
        }
    }

    private func use<Result: Sendable>(
        _ attempt: FileAttempt, _ server: SFTPServer, preferringUnused prefersUnused: Bool = false, _ reporter: AttemptReporter,
        _ body: (PooledConnection, SFTPFeatures) async throws -> Result
    ) async throws -> Result {
        try await pool.use(
            attempt.endpoint, atMost: server.options.maxConnections, preferringUnused: prefersUnused, credentials: attempt.credentials,
            logger: attempt.logger, waiting: { reporter.reportActivity() }
        ) { connection in
            // An older connection shows nothing about the current state of the server.
            let isNew = !connection.client.isReady
            var features = try await connection.client.features()
            if isNew { reporter.reportAnswer() }
            if !server.options.sync { features.extensions.removeAll { $0 == ProtocolExtension.fsync.rawValue } }
            return try await body(connection, features)
        }
    }

    /// Connects, asks the server for the account's start folder, and checks that the endpoint's folder exists.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, with the code `noSuchRemoteFile` if the folder does not exist; or `CancellationError`.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        let server = try SFTPServer(endpoint)
        return try await pool.use(
            endpoint, atMost: server.options.maxConnections, credentials: credentials, logger: Self.logger
        ) { connection in
            let client = connection.client
            let features = try await client.features()
            let begin = ContinuousClock.now
            _ = try await client.answer(to: .realpath(Array(".".utf8)))
            let latency = ContinuousClock.now - begin
            try await checkFolder(server.address, client)
            var report = EndpointReport(
                version: "SFTP \(features.version)", features: features.extensions, latency: latency)
            report.hostKeyFingerprint = connection.hostKeyFingerprint
            if let limits = features.limits {
                let named = [
                    "packet": limits.packetLength, "read": limits.readLength, "write": limits.writeLength, "handles": limits.openHandles,
                ]
                report.limits = named.filter { $0.value > 0 }.mapValues { Int64(clamping: $0) }
            }
            return report
        }
    }

    /// A server that does not report on the folder may still allow writing there.
    private func checkFolder(_ address: SFTPAddress, _ client: SFTPClient) async throws {
        guard !address.folder.isEmpty else { return }
        let name = String(decoding: address.folder, as: UTF8.self)
        switch try await client.answer(to: .stat(address.folder)) {
        case .attributes(let found) where found.kind.map { $0 != .folder } ?? false:
            throw TransferError(
                .permanent, .noSuchRemoteFile, "\(name) at \(client.serverName) is not a folder, but files of this account go there.")
        case .status(let status) where status.code.meansMissing:
            throw TransferError(
                .permanent, .noSuchRemoteFile,
                "There is no folder \(name) at \(client.serverName), where files of this account go; create it, or correct the address.")
        default: return
        }
    }

    /// Removes the part file of an unfinished upload. A file under its final name stays: a later attempt, perhaps at another endpoint with
    /// the same storage, may have completed it since.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        // The checkpoint of a download refers to nothing on the server.
        guard let stored = UploadCheckpoint(checkpoint), stored.part != stored.final else { return }
        let server = try SFTPServer(endpoint)
        try await pool.use(endpoint, atMost: server.options.maxConnections, credentials: credentials, logger: Self.logger) { connection in
            let client = connection.client
            do {
                try await client.perform(.remove([UInt8](stored.part)))
            } catch let failure as StatusFailure where failure.status.code.meansMissing {
                return
            } catch let failure as StatusFailure {
                throw failure.transferError("the part file of an upload", .upload, at: client.serverName)
            }
        }
    }

    /// Closes all connections; running attempts fail.
    public func shutdown() async {
        await pool.shutdown()
    }
}

extension TransportID {
    /// The ID of ``SFTPTransport``.
    public static let sftp: TransportID = "sftp"
}
