import Logging
import SSHEngine
public import TransferCore
public import TransportSupport

/// Transfers files to and from SFTP servers with version 3 of the protocol (draft-ietf-secsh-filexfer-02) and the OpenSSH extensions that the server
/// offers.
///
/// By default, the transport writes an upload to a part file, `.tq-<ID>.part`, in the folder of the file. When the part file is complete,
/// the transport syncs it, if the server supports syncs, and renames it.
///
/// An interrupted upload resumes after the last byte that the server synced. It can also resume after the last byte that the server
/// acknowledged. This requires that the part file is large enough, that its last bytes equal the corresponding bytes of the source, and that
/// a sync succeeds.
///
/// Without syncs, because the server does not support them or ``SFTPOptions/sync`` is false, the upload resumes after the last byte that the
/// server acknowledged. The transport first reads back the newest bytes of the part file and compares them with the source. It skips this
/// comparison for streams, and if ``SFTPOptions/sync`` is false.
///
/// A download resumes if the file on the server still has the same size and modification time. Otherwise, it restarts.
///
/// For `Verification.checksum`, the server computes checksums with `sha256sum`, `shasum` or `md5sum` if the account may run commands.
/// Otherwise, the transport reads the file back and compares it, and the receipt contains a warning. Checksums are not available for
/// streams. The transport verifies the expected checksum of a session (`AttemptOptions.expectedChecksum`) locally.
///
/// Create endpoints with `Endpoint.sftp` and ``SFTPOptions``.
///
/// A transport value is only a configuration. Each queue creates an instance with its own connections (``makeInstance()``), so several
/// queues can use one value. The instances share the threads that read and write files.
public struct SFTPTransport: Transport, EndpointValidating, SessionValidating, EndpointChecking, PartialDiscarding, FileNaming {
    /// The ID of this transport, `sftp`.
    public let id: TransportID = .sftp

    /// The initial number of small files in flight. The number is high because each file waits for several responses, and all files share a
    /// few connections.
    public let smallFilesInFlight = 64

    /// libssh2, with its version.
    package static var libraries: [String] { ["libssh2/\(SSHConnection.libraryVersion)"] }

    /// The descriptions of the settings of endpoints, sorted by name.
    public static var settings: [SettingDescription] { SFTPOptions.table.descriptions }

    /// Checks an endpoint's address, settings and kinds of credentials without contacting the server.
    ///
    /// Use this method in programs that let users enter endpoints. Call it on any executor. An attempt makes the same checks.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`, or of the class `unsupported`.
    public static func validate(_ endpoint: Endpoint) throws(TransferError) {
        _ = try SFTPServer(endpoint)
    }

    /// Checks a session's options without contacting the server.
    ///
    /// Use this method in programs that let users enter sessions. Call it on any executor. An attempt makes the same checks. A failure is
    /// not final: the account may have another endpoint whose transport supports the options.
    ///
    /// - Parameter options: The options as an attempt receives them.
    /// - Throws: A `TransferError` if the expected checksum is invalid, or if the options contain settings or a creation URL. The transport
    ///   has no settings for sessions.
    package static func validate(_ options: AttemptOptions) throws(TransferError) {
        _ = try Checksum(expectedBy: options)
        guard options.settings.isEmpty else {
            throw TransferError(.unsupported, .unsupported, "The SFTP transport has no settings for sessions.")
        }
        guard options.creationURL == nil else {
            throw TransferError(.unsupported, .unsupported, "SFTP does not create uploads at a URL, so it can't use a creation URL.")
        }
    }

    /// Checks an endpoint when an app saves an account. The queue calls this method on the executor of the app's call.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`, or of the class `unsupported`.
    public func validate(_ endpoint: Endpoint) throws(TransferError) { try Self.validate(endpoint) }

    /// Checks a session's options when an app enqueues the session. The queue calls this method on its own executor and on the executors of
    /// the app's calls.
    ///
    /// - Throws: A `TransferError` if the transport can't use the options.
    public func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try Self.validate(options)
    }

    /// Returns what happens to two files with the same remote name, which depends on the session's overwrite policy.
    package static func nameClash(_ options: AttemptOptions) -> NameClash {
        switch options.overwrite {
        case .rename: .bothKept
        case .never: .refused
        case .skip: .skipped
        case .always, .different, .newer: .replaced
        }
    }

    /// Returns what happens to two files with the same remote name. When an app enqueues a session, the queue calls this method on the
    /// executor of the app's call.
    public func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash { Self.nameClash(options) }

    let pool: SSHConnectionPool
    private let makePool: @Sendable () -> SSHConnectionPool
    private let disks: DiskThreads
    private let failures = UnexplainedFailures()
    private static let logger = Logger(label: "transport-sftp")

    /// Creates a transport. Its threads and connections start when they are first needed.
    public init() {
        self.init(policy: PoolPolicy())
    }

    /// Creates a transport with a policy for its connections.
    package init(policy: PoolPolicy) {
        self.init(makePool: { SSHConnectionPool(SSHConnector(policy), policy: policy) }, disks: DiskThreads(limit: 4))
    }

    /// Creates a transport that uses the caller's connector and threads.
    package init(connector: any SFTPConnector, policy: PoolPolicy = PoolPolicy(), disks: DiskThreads = DiskThreads(limit: 4)) {
        self.init(makePool: { SSHConnectionPool(connector, policy: policy) }, disks: disks)
    }

    private init(makePool: @escaping @Sendable () -> SSHConnectionPool, disks: DiskThreads) {
        self.makePool = makePool
        pool = makePool()
        self.disks = disks
    }

    /// Returns a transport with the same configuration and disk threads, but its own connections. A queue calls this method once while it
    /// opens.
    public func makeInstance() -> SFTPTransport {
        SFTPTransport(makePool: makePool, disks: disks)
    }

    /// Uploads or downloads one file. If the transfer fails, saves a checkpoint for the bytes that a later attempt can keep, and then
    /// throws.
    ///
    /// The queue calls this method on a separate task.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let remainingPartFile = RemainingPartFile(of: attempt)
        do {
            let receipt = try await transfer(attempt, leaving: remainingPartFile, reporting: reporter)
            failures.forget(attempt)
            return receipt
        } catch let failure as UnexplainedFailure {
            throw remainingPartFile.addingLocation(to: failures.error(for: failure, of: attempt))
        } catch {
            failures.forget(attempt)
            if error is CancellationError, let location = remainingPartFile.location { reporter.reportRemainingPartFile(location) }
            throw remainingPartFile.addingLocation(to: error)
        }
    }

    private func transfer(
        _ attempt: FileAttempt, leaving remainingPartFile: RemainingPartFile, reporting reporter: AttemptReporter
    ) async throws -> TransferReceipt {
        try Self.validate(attempt.options)
        let server = try SFTPServer(attempt.endpoint)
        let lender = ConnectionLender(
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
                // The stream's confirmed bytes may no longer be available when the checksum is computed.
                throw TransferError(.unsupported, .unsupported, "The SFTP transport can't compare checksums of streams.")
            }
            // Checks the source first, because connecting may take a long time.
            let threads = disks.threads(for: source)
            let file = try await FileReader.open(source, on: threads)
            return try await use(attempt, server, reporter) { connection, features in
                try await SFTPUpload(
                    attempt, server, over: connection, features, lender: lender, from: file, on: threads, leaving: remainingPartFile,
                    reporting: reporter
                ).run()
            }
        case .form:
            throw TransferError(.unsupported, .unsupported, "SFTP has no forms; use an account with an endpoint for forms.")
        case .download(let destination):
            let threads = disks.threads(for: destination)
            return try await use(attempt, server, reporter) { connection, features in
                try await SFTPDownload(
                    attempt, server, over: connection, features, lender: lender, on: threads, reporting: reporter
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
            // Only a new connection proves that the server currently accepts logins.
            if connection.isNew { reporter.reportAuthenticatedResponse() }
            var features = try await connection.client.features()
            if !server.options.sync { features.extensions.removeAll { $0 == ProtocolExtension.fsync.rawValue } }
            return try await body(connection, features)
        }
    }

    /// Checks that an endpoint works: connects to the server if no connection is open, requests the account's start folder, and checks that
    /// the endpoint's folder exists.
    ///
    /// The queue calls this method on a separate task.
    ///
    /// - Throws: A `TransferError` or `CancellationError`. The error's code is `noSuchRemoteFile` if the folder does not exist.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        let server = try SFTPServer(endpoint)
        return try await pool.use(
            endpoint, atMost: server.options.maxConnections, credentials: credentials, logger: Self.logger
        ) { connection in
            let client = connection.client
            let features = try await client.features()
            let begin = ContinuousClock.now
            _ = try await client.response(to: .realpath(Array(".".utf8)))
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

    /// If the server does not report the folder's attributes, the check passes, because uploads may still work.
    private func checkFolder(_ address: SFTPAddress, _ client: SFTPClient) async throws {
        guard !address.folder.isEmpty else { return }
        let name = String(decoding: address.folder, as: UTF8.self)
        switch try await client.response(to: .stat(address.folder)) {
        case .attributes(let found) where found.kind.map { $0 != .folder } ?? false:
            throw TransferError(
                .permanent, .noSuchRemoteFile,
                "\(name) at \(client.serverName) is not a folder; correct the folder in the account's address.")
        case .status(let status) where status.code.meansMissing:
            throw TransferError(
                .permanent, .noSuchRemoteFile,
                "\(client.serverName) has no folder \(name). Create it, or correct the account's address.")
        default: return
        }
    }

    /// Removes the part file of an unfinished upload. Keeps a file under its final name, because a later attempt may have completed it,
    /// perhaps at another endpoint with the same storage.
    ///
    /// The queue calls this method on a separate task.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        // A download's checkpoint refers to no part file on the server.
        guard let stored = UploadCheckpoint(checkpoint), stored.part != stored.final else { return }
        let server = try SFTPServer(endpoint)
        try await pool.use(endpoint, atMost: server.options.maxConnections, credentials: credentials, logger: Self.logger) { connection in
            let client = connection.client
            do {
                for path in [stored.otherPart, stored.part].compactMap(\.self) { try await client.removeIfPresent([UInt8](path)) }
            } catch let failure as StatusFailure {
                throw failure.transferError("the part file of an upload", .upload, at: client.serverName)
            }
        }
    }

    /// Closes all connections. Running attempts fail. The queue calls this method once, when it ends.
    public func shutdown() async {
        await pool.shutdown()
    }
}

extension TransportID {
    /// The ID of ``SFTPTransport``.
    public static let sftp: TransportID = "sftp"
}
