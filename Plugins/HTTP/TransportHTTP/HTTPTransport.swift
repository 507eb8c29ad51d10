public import CurlEngine
import Foundation
import HTTPSupport
public import TransferCore
public import TransportSupport

/// Uploads files to plain HTTP servers, such as object stores and form handlers, and downloads files from them.
///
/// A plain HTTP server can't report how many bytes of a file it has, so an interrupted upload of a file restarts from byte 0. If the response
/// to a complete upload is lost, the file is sent again, except by a fleet after a `POST` (``HTTPOptions/repeatsUnknownOutcomes``). A form
/// handler can recognize the second copy by a text field with the transfer's ID (``HTTPOptions/fields``). `PUT` and `POST` without a form
/// send a stream while the app produces it, in one request that can't resume, unless the server requires the length first. A form sends a
/// stream only after the stream has ended, because the request begins with the length of the content. Create endpoints with
/// `Endpoint.http`, whose documentation describes the upload methods.
///
/// A large download uses several segments in parallel if the session allows that and the server supports ranges. A download resumes if the
/// server still has the same version of the file, identified by a strong `ETag` or by `Last-Modified`. Otherwise, it restarts.
///
/// On a WebDAV server (``HTTPOptions/webDAV``), `PUT` creates missing folders, and whole folders can be downloaded. After a `PUT`, the
/// transport compares the file with the checksum in the response or, if ``HTTPOptions/uploadCheck`` requires this, with the size that the
/// server reports. If the session requires checksums, the transport requests a checksum; if the server sends none, the transport reads the
/// file back.
///
/// A download is compared with the checksum of the session or of the server (`Repr-Digest`, `Digest`, `Content-Digest`, `Content-MD5`),
/// unless the session disables verification. A download without a checksum fails if the session requires checksums.
///
/// A transport value is only a configuration. Each queue creates an instance with its own connections (``makeInstance()``), so several
/// queues can use one value, at the same time or one after the other.
public struct HTTPTransport: Transport, EndpointValidating, SessionValidating, EndpointChecking, FileNaming, FormUploading {
    /// The ID of this transport, `http`.
    public let id: TransportID = .http

    /// The maximum number of small files in flight: 64. The queue adapts the number to the rate, up to this maximum.
    public let maximumSmallFilesInFlight = 64

    /// libcurl and the libraries that it uses, each with its version.
    package static var libraries: [String] { CurlEngine.libraries }

    /// The descriptions of the settings of endpoints and sessions, sorted by name.
    public static var settings: [SettingDescription] { HTTPOptions.table.descriptions }

    /// Checks an endpoint's address, settings and headers without contacting the server.
    ///
    /// Use this method in programs that let users enter endpoints. Call it on any executor. An attempt makes the same checks.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`.
    public static func validate(_ endpoint: Endpoint) throws(TransferError) {
        _ = try SessionPlan(endpoint, for: nil)
        try EndpointCredentials.check(endpoint)
    }

    /// Checks that a session's options are valid and have an effect at the endpoint, without contacting the server.
    ///
    /// Use this method in programs that let users enter sessions. Call it on any executor. An attempt makes the same checks. Another
    /// endpoint of the account may support options that this endpoint does not.
    ///
    /// - Parameters:
    ///   - options: The options as an attempt receives them.
    ///   - direction: The direction of the session.
    ///   - endpoint: An endpoint of the session's account.
    /// - Throws: A `TransferError` that names the option or the setting.
    package static func validate(
        _ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint
    ) throws(TransferError) {
        _ = try SessionPlan(endpoint, options, for: direction)
    }

    /// Checks an endpoint when an account is saved. The queue calls this method on the executor of its caller.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`.
    public func validate(_ endpoint: Endpoint) throws(TransferError) { try Self.validate(endpoint) }

    /// Checks a session's options when the session is enqueued or changed. The queue calls this method on its own executor and on its
    /// callers' executors.
    ///
    /// - Throws: A `TransferError` that names the option or the setting.
    public func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try Self.validate(options, for: direction, at: endpoint)
    }

    /// Returns what happens to two files with the same remote name. A `PUT` replaces the first file, and a form handler may do so too,
    /// unless `{transfer}` makes each file's address or form field unique.
    package static func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
        (try? SessionPlan(endpoint, options, for: .upload))?.nameClash ?? .replaced
    }

    /// Returns what happens to two files with the same remote name. The queue calls this method when a session is enqueued, on the
    /// executors of its callers.
    public func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash { Self.nameClash(options, at: endpoint) }

    /// Checks that an endpoint receives forms with a session's options. The queue calls this method before it stores a form, and before
    /// each attempt.
    ///
    /// - Throws: A `TransferError` that names the option or the setting.
    public func validateForms(with options: AttemptOptions, at endpoint: Endpoint) throws(TransferError) {
        try SessionPlan(endpoint, options, for: .upload).checkForms()
    }

    let resources: ClientResources
    private let folders = FolderCreation()
    private let wait: @Sendable (Duration) async throws -> Void

    /// Creates a transport. Its threads and connections start when they are first needed.
    ///
    /// - Parameters:
    ///   - reuse: When the transport reuses the headers that the hook returned for a file; by default, never.
    ///   - headers: Called before each request to a trusted origin, unless the transport reuses headers; returns the headers to send. After
    ///     a 401 or 403, the transport calls the hook to renew the headers, but only once for all requests that were rejected with the same
    ///     headers. It then sends the rejected requests again.
    public init(reusingHeaders reuse: HeaderReuse = .never, headers: HeaderHook? = nil) {
        self.init(reusingHeaders: reuse, headers: headers, wait: { try await Task.sleep(for: $0) })
    }

    /// Creates a transport that uses the given threads and clock.
    package init(
        reusingHeaders reuse: HeaderReuse = .never, headers: HeaderHook? = nil, disks: DiskThreads = DiskThreads(limit: 4),
        wait: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.init(
            resources: ClientResources(
                disks: disks, hook: headers.map { HeaderHookCaller($0, reserved: .http.adding(["content-type"]), reuse: reuse) }),
            wait: wait)
    }

    private init(resources: ClientResources, wait: @escaping @Sendable (Duration) async throws -> Void) {
        self.resources = resources
        self.wait = wait
    }

    /// Returns a transport with the same configuration, but with its own connections, network threads and cache of server quirks. The
    /// instances share the threads that read and write files. Each queue that opens with this transport calls this method.
    public func makeInstance() -> HTTPTransport {
        HTTPTransport(resources: resources.makeInstance(), wait: wait)
    }

    /// Uploads or downloads one file, or uploads one form, usually in one request. A download with segments, the verification of an upload,
    /// and missing WebDAV folders take more requests.
    ///
    /// The queue calls this method on a separate task.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let server = try HTTPEndpointClient(attempt, resources: resources)
        return try await within(server.options.transferTimeout, of: server) {
            switch attempt.payload {
            case .download(let destination):
                let threads = resources.disks.threads(for: destination)
                return try await HTTPDownload(attempt, from: server.source(attempt), on: threads, reporting: reporter).run()
            case .upload(let source):
                return try await HTTPUpload(attempt, to: server, on: resources.disks, creating: folders, reporting: reporter).run(source)
            case .form(let form):
                return try await HTTPUpload(attempt, to: server, on: resources.disks, creating: folders, reporting: reporter).run(form)
            }
        }
    }

    /// Checks whether the server is available, with a `HEAD` request, or `OPTIONS` for WebDAV, to the endpoint's address without its query.
    ///
    /// Any response shows that the server is available, unless the server rejects the credentials or the client certificate, requires TLS,
    /// or reports a server error.
    ///
    /// The queue calls this method on a separate task.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        try await HTTPEndpointClient(endpoint, credentials: credentials, resources: resources).report()
    }

    /// Closes all connections and stops the network threads. Running requests fail.
    public func shutdown() async {
        await resources.engine.shutdown()
    }

    /// Cancels an attempt that exceeds its time limit.
    private func within(
        _ limit: Duration?, of server: HTTPEndpointClient, _ body: @escaping @Sendable () async throws -> TransferReceipt
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
