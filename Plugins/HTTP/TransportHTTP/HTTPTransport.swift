public import CurlEngine
import Foundation
import HTTPSupport
public import TransferCore
public import TransportSupport

/// Uploads files to and downloads files from plain HTTP servers: a pre-signed `PUT` of an object store, a form handler, a download by URL.
///
/// Such a server can't report how much of a file it has. So uploads have no checkpoints: an interrupted upload starts again, and its bytes
/// count as confirmed when the server has answered that it has all of them. If that response is lost, the file is sent again; a form
/// handler can recognize the second copy by a text field with the transfer's ID, ``HTTPOptions/fields``. Make endpoints with `Endpoint.http`,
/// which lists the ways to send files. A growing source is sent when it is complete, because its length comes first.
///
/// A large download uses several segments in parallel if a session asks for that and the server supports ranges. Downloads resume if the
/// server still has the same version of the file, by a strong `ETag` or `Last-Modified`, and otherwise start again.
///
/// A download is compared with the checksum of the session, or with the server's (`Repr-Digest`, `Digest`, `Content-Digest`,
/// `Content-MD5`), unless the session wants no verification. A session that requires checksums fails without one.
///
/// A value holds the configuration. Each queue makes an instance with connections and threads of its own (``makeInstance()``), so several
/// queues can use one value, at the same time or one after the other.
public struct HTTPTransport: Transport, EndpointValidating, SessionValidating, EndpointChecking, FileNaming {
    /// `http`
    public let id: TransportID = .http

    /// The C libraries in this process, each with its version.
    public static var libraries: [String] { CurlEngine.libraryVersion.split(separator: " ").map(String.init) }

    /// The documentation of the settings of endpoints and sessions, sorted by name.
    public static var settings: [SettingDescription] { HTTPOptions.table.descriptions }

    /// Checks an endpoint without contacting the server: its address, its settings, and its headers.
    ///
    /// For programs that let users enter endpoints; on any executor. An attempt checks the same.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`.
    public static func validate(_ endpoint: Endpoint) throws(TransferError) {
        _ = try SessionPlan(endpoint, for: nil)
        try EndpointCredentials.check(endpoint)
    }

    /// Checks a session's options without contacting the server: that they are valid, and have an effect at the endpoint.
    ///
    /// For programs that let users enter sessions; on any executor. An attempt checks the same. Another endpoint of the account may
    /// support what this one does not.
    ///
    /// - Parameters:
    ///   - options: As an attempt gets them.
    ///   - direction: The direction of the session.
    ///   - endpoint: An endpoint of its account.
    /// - Throws: A `TransferError` that names the option or the setting.
    public static func validate(
        _ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint
    ) throws(TransferError) {
        _ = try SessionPlan(endpoint, options, for: direction)
    }

    /// Checks an endpoint when an account is saved. Called by the queue, on its caller's executor.
    public func validate(_ endpoint: Endpoint) throws(TransferError) { try Self.validate(endpoint) }

    /// Checks a session's options when it is enqueued. Called by the queue, on its own and its callers' executors.
    public func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try Self.validate(options, for: direction, at: endpoint)
    }

    /// Returns what happens to two files with one remote name: a `PUT` replaces the first one, and so can a form handler, unless
    /// `{transfer}` gives each its own address or field.
    public static func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
        (try? SessionPlan(endpoint, options, for: .upload))?.nameClash ?? .replaced
    }

    /// Returns the same when a session is enqueued. Called by the queue, on its callers' executors.
    public func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash { Self.nameClash(options, at: endpoint) }

    private let resources: ClientResources
    private let wait: @Sendable (Duration) async throws -> Void

    /// Creates a transport. The first attempt starts its threads and connections.
    ///
    /// - Parameter headers: Called before each request to a trusted origin for the headers to send. After 401 or 403 it is called for
    ///   renewed ones, once for all requests that were rejected with the same headers, and the request is sent again.
    public init(headers: HeaderHook? = nil) {
        self.init(headers: headers, wait: { try await Task.sleep(for: $0) })
    }

    /// Creates a transport with the caller's threads and clock.
    package init(
        headers: HeaderHook? = nil, disks: DiskThreads = DiskThreads(limit: 4), wait: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.init(
            resources: ClientResources(disks: disks, hook: headers.map { HeaderSource($0, reserved: .http.adding(["content-type"])) }),
            wait: wait)
    }

    private init(resources: ClientResources, wait: @escaping @Sendable (Duration) async throws -> Void) {
        self.resources = resources
        self.wait = wait
    }

    /// Returns a transport with the same configuration and with connections, threads and knowledge of servers of its own. Called by each
    /// queue that opens with this transport.
    public func makeInstance() -> HTTPTransport {
        HTTPTransport(resources: resources.makeInstance(), wait: wait)
    }

    /// Uploads or downloads one file in one request.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let server = try HTTPServer(attempt.endpoint, credentials: attempt.credentials, resources: resources, attempt: attempt)
        return try await within(server.options.transferTimeout, of: server) {
            switch attempt.payload {
            case .download(let destination):
                let threads = resources.disks.threads(for: destination)
                return try await HTTPDownload(attempt, from: server.source(attempt), on: threads, reporting: reporter).run()
            case .upload(let source):
                return try await HTTPUpload(attempt, source, to: server, on: resources.disks, reporting: reporter).run()
            }
        }
    }

    /// Sends a `HEAD` request to the endpoint's address. Every response means that the server is there, except rejected credentials and a
    /// failure of the server.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        try await HTTPServer(endpoint, credentials: credentials, resources: resources).report()
    }

    /// Closes all connections and ends the threads; running requests fail.
    public func shutdown() async {
        await resources.engine.shutdown()
    }

    /// Ends an attempt that exceeds its time limit, as a cancellation would.
    private func within(
        _ limit: Duration?, of server: HTTPServer, _ body: @escaping @Sendable () async throws -> TransferReceipt
    ) async throws -> TransferReceipt {
        guard let limit else { return try await body() }
        return try await withThrowingTaskGroup(of: TransferReceipt?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await wait(limit)
                return nil
            }
            defer { group.cancelAll() }
            guard let receipt = try await group.next() ?? nil else {
                throw TransferError(
                    .transient, .timedOut,
                    "The transfer with \(server.origin) took longer than \(limit), the limit of the setting transferTimeout.")
            }
            return receipt
        }
    }
}

extension TransportID {
    /// The ID of ``HTTPTransport``.
    public static let http: TransportID = "http"
}
