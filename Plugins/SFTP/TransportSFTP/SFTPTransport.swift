import Logging
import SSHEngine
public import TransferCore
package import TransportSupport

/// Moves files to and from servers that speak SFTP, version 3 (draft-ietf-secsh-filexfer-02), with those of OpenSSH's extensions that the
/// server offers.
///
/// An upload goes into a part beside its name, `.tq-<transfer>.part`, which is synced and gets the name as a whole. An interrupted upload resumes
/// after the last byte that the server synced. If the connection broke, it resumes after the last byte that the server acknowledged, once the part
/// is large enough, its end is the same as here, and the server has synced it. If the server can't sync, the newest bytes of the part are read back
/// and compared first; with the setting `sync` off, they are not. A download resumes if the file at the server still has its size and modification
/// time.
///
/// Checksums (`Verification.checksum`) are computed by `sha256sum`, `shasum` or `md5sum` where the server lets the account run commands; otherwise
/// the file is read back and compared, of which the receipt has a warning. Those of streams are not, and refused. A checksum that a session names
/// (`AttemptOptions.expectedChecksum`) is compared here, without asking the server. Endpoints are made with
/// ``TransferCore/Endpoint/sftp(_:credentials:settings:)``, which lists the settings.
///
/// A value holds the configuration. Each queue makes an instance with connections and threads of its own (``makeInstance()``), so one value can be
/// used for several queues, at the same time or one after the other.
public struct SFTPTransport: Transport, EndpointValidating, SessionValidating, EndpointChecking, PartialDiscarding, FileNaming {
    /// `sftp`
    public let id: TransportID = .sftp

    /// 64: one connection carries the requests of many files at once, each of which needs several answers.
    public let smallFilesInFlight = 64

    /// The C libraries that this process runs on, each with its version.
    public static var libraries: [String] { ["libssh2/\(SSHConnection.libraryVersion)"] }

    /// Checks what can be known of an endpoint without asking anybody: its address, its settings, and the kinds of its credentials.
    ///
    /// For programs that take endpoints from people, on any executor; an attempt checks the same.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`, or of the class `unsupported`.
    public static func validate(_ endpoint: Endpoint) throws(TransferError) {
        _ = try EndpointSettings(endpoint)
    }

    /// Checks what can be known of a session's options without asking anybody.
    ///
    /// For programs that take sessions from people, on any executor; an attempt checks the same. Another endpoint of the account may be able to do
    /// what one by this transport can't.
    ///
    /// - Parameter options: As an attempt would get them.
    /// - Throws: A `TransferError`: of the class `unsupported`, or for a checksum that is none.
    public static func validate(_ options: AttemptOptions) throws(TransferError) {
        _ = try ContentDigest(expectedBy: options)
        guard options.settings.isEmpty else {
            throw TransferError(.unsupported, .unsupported, "The SFTP transport has no setting that a session can change.")
        }
    }

    /// Checks the same when an account is saved. Called by the queue, on the executor of its caller.
    public func validate(_ endpoint: Endpoint) throws(TransferError) { try Self.validate(endpoint) }

    /// Checks the same when a session is enqueued. Called by the queue, on its own and its callers' executors.
    public func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try Self.validate(options)
    }

    /// Decides what happens to two files that have one remote name, by the overwrite policy that the session has.
    public static func nameClash(_ options: AttemptOptions) -> NameClash {
        switch options.overwrite {
        case .rename: .keptApart
        case .never: .refused
        case .skip: .leftOut
        case .always, .different, .newer: .replaced
        }
    }

    /// Decides the same when a session is enqueued. Called by the queue, on its callers' executors.
    public func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash { Self.nameClash(options) }

    let pool: ConnectionPool
    private let makePool: @Sendable () -> ConnectionPool
    private let disks: DiskThreads
    private let failures = UnexplainedFailures()
    private static let logger = Logger(label: "transport-sftp")

    /// Makes a transport. Threads and connections come with the first attempt.
    public init() {
        self.init(policy: PoolPolicy())
    }

    /// Makes a transport that shares its connections in its own way.
    package init(policy: PoolPolicy) {
        self.init(makePool: { ConnectionPool(SSHConnector(), policy: policy) }, disks: DiskThreads(limit: 4))
    }

    /// Makes a transport with its own way to connect, and threads of the caller's choice.
    package init(connector: any SFTPConnector, policy: PoolPolicy = PoolPolicy(), disks: DiskThreads = DiskThreads(limit: 4)) {
        self.init(makePool: { ConnectionPool(connector, policy: policy) }, disks: disks)
    }

    private init(makePool: @escaping @Sendable () -> ConnectionPool, disks: DiskThreads) {
        self.makePool = makePool
        pool = makePool()
        self.disks = disks
    }

    /// Returns a transport with the same configuration, and with connections and threads of its own. Called by each queue that opens with this
    /// transport.
    public func makeInstance() -> SFTPTransport {
        SFTPTransport(makePool: makePool, disks: disks)
    }

    /// Sends or receives one file.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, after a checkpoint was saved for what arrived; or `CancellationError`.
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
        let settings = try EndpointSettings(attempt.endpoint)
        let others = ConnectionLender(
            prepare: { [pool] count in
                await pool.prepare(
                    count, to: attempt.endpoint, atMost: settings.maximumConnections, credentials: attempt.credentials,
                    logger: attempt.logger)
            }, lend: { body in try await use(attempt, settings, apart: true, reporter, body) })
        switch attempt.payload {
        case .upload(let source):
            guard attempt.options.expectedChecksum == nil else {
                throw TransferError(.unsupported, .unsupported, "The checksum that is expected is one of a download.")
            }
            guard source.growth == nil || attempt.options.verification != .checksum else {
                // What was confirmed may be gone from the disk when the checksum is to be computed.
                throw TransferError(.unsupported, .unsupported, "The SFTP transport compares the checksums of files, and not of streams.")
            }
            // Looked at before a connection is made, which may take its time.
            let threads = disks.threads(for: source)
            let file = try await FileReader.open(source, on: threads)
            return try await use(attempt, settings, reporter) { connection, features in
                try await SFTPUpload(
                    attempt, settings, over: connection, features, others: others, from: file, on: threads, reporting: reporter
                ).run()
            }
        case .download(let destination):
            let threads = disks.threads(for: destination)
            return try await use(attempt, settings, reporter) { connection, features in
                try await SFTPDownload(
                    attempt, settings, over: connection, features, others: others, on: threads, reporting: reporter
                ).run()
            }
        }
    }

    private func use<Result: Sendable>(
        _ attempt: FileAttempt, _ settings: EndpointSettings, apart isApart: Bool = false, _ reporter: AttemptReporter,
        _ body: (PooledConnection, ServerFeatures) async throws -> Result
    ) async throws -> Result {
        try await pool.use(
            attempt.endpoint, atMost: settings.maximumConnections, apart: isApart, credentials: attempt.credentials, logger: attempt.logger,
            waiting: { reporter.reportActivity() }
        ) { connection in
            var features = try await connection.client.features()
            reporter.reportAnswer()
            if !settings.syncs { features.extensions.removeAll { $0 == ProtocolExtension.fsync.rawValue } }
            return try await body(connection, features)
        }
    }

    /// Connects, asks the server for the folder that the account begins in, and looks whether there is the endpoint's.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, with the code `noSuchRemoteFile` if there is no such folder; or `CancellationError`.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        let settings = try EndpointSettings(endpoint)
        return try await pool.use(
            endpoint, atMost: settings.maximumConnections, credentials: credentials, logger: Self.logger
        ) { connection in
            let client = connection.client
            let features = try await client.features()
            let begin = ContinuousClock.now
            _ = try await client.answer(to: .realpath(Array(".".utf8)))
            let latency = ContinuousClock.now - begin
            try await checkFolder(settings.address, client)
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

    /// A server that tells nothing of the folder may let files be written there all the same.
    private func checkFolder(_ address: SFTPAddress, _ client: SFTPClient) async throws {
        guard !address.folder.isEmpty else { return }
        let name = String(decoding: address.folder, as: UTF8.self)
        switch try await client.answer(to: .stat(address.folder)) {
        case .attributes(let found) where found.kind.map { $0 != .folder } ?? false:
            throw TransferError(
                .permanent, .noSuchRemoteFile, "\(name) at \(client.serverName) is no folder; files of this account go below it.")
        case .status(let status) where status.code.meansMissing:
            throw TransferError(
                .permanent, .noSuchRemoteFile,
                "There is no folder \(name) at \(client.serverName), where files of this account go; make it, or correct the address.")
        default: return
        }
    }

    /// Removes the part of an unfinished upload.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        // A checkpoint of a download refers to nothing at the server.
        guard let stored = UploadCheckpoint(checkpoint) else { return }
        let settings = try EndpointSettings(endpoint)
        try await pool.use(endpoint, atMost: settings.maximumConnections, credentials: credentials, logger: Self.logger) { connection in
            let client = connection.client
            do {
                try await client.perform(.remove([UInt8](stored.part)))
            } catch let failure as StatusFailure where failure.status.code.meansMissing {
                return
            } catch let failure as StatusFailure {
                throw failure.transferError("the part of an upload", .upload, at: client.serverName)
            }
        }
    }

    /// Closes all connections; attempts still under way fail.
    public func shutdown() async {
        await pool.shutdown()
    }
}

extension TransportID {
    /// The ID of ``SFTPTransport``.
    public static let sftp: TransportID = "sftp"
}
