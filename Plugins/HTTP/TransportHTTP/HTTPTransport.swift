public import CurlEngine
import Foundation
import HTTPSupport
public import TransferCore
package import TransportSupport

/// Sends files to servers that speak plain HTTP, and receives files from them: an object store's pre-signed `PUT`, a form handler, a download by
/// URL.
///
/// Such a server can't say how much it has of a file. So an upload has no checkpoints: one that was interrupted begins anew, and its bytes
/// count as confirmed when the server answered that it has all of them. If that answer is lost, the file is sent once more; a form handler can
/// tell the second copy by a text field that holds the transfer's ID, see ``TransferCore/Endpoint/http(_:credentials:settings:)``, which also
/// lists how files are sent. A source that still grows is sent once it is whole, as its length comes first.
///
/// A large download comes in several parts at once where a session asks for that and the server knows ranges.
/// Downloads are continued where the server still has that version of the file, by a strong `ETag` or `Last-Modified`, and otherwise begin anew.
///
/// What was received is compared with the checksum that the session names, or with the one that the server tells of the file (`Repr-Digest`,
/// `Digest`, `Content-Digest`, `Content-MD5`), unless the session wants no verification. A session that wants checksums fails where there is none.
///
/// A value holds the configuration. Each queue makes an instance with connections and threads of its own (``makeInstance()``), so one value can be
/// used for several queues, at the same time or one after the other.
public struct HTTPTransport: Transport, EndpointValidating, SessionValidating, EndpointChecking, FileNaming {
    /// `http`
    public let id: TransportID = .http

    /// The C libraries that this process runs on, each with its version.
    public static var libraries: [String] { CurlEngine.libraryVersion.split(separator: " ").map(String.init) }

    /// Checks what can be known of an endpoint without asking anybody: its address, its settings, and the headers that it names.
    ///
    /// For programs that take endpoints from people, on any executor; an attempt checks the same.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`.
    public static func validate(_ endpoint: Endpoint) throws(TransferError) {
        _ = try SessionPlan(endpoint, for: nil)
        try EndpointCredentials.check(endpoint)
    }

    /// Checks what can be known of a session's options without asking anybody: that each makes sense, and has an effect at the endpoint.
    ///
    /// For programs that take sessions from people, on any executor; an attempt checks the same. Another endpoint of the account may be able to do
    /// what this one can't.
    ///
    /// - Parameters:
    ///   - options: As an attempt would get them.
    ///   - direction: That of the session.
    ///   - endpoint: One of its account's.
    /// - Throws: A `TransferError` that names the option, or the setting.
    public static func validate(
        _ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint
    ) throws(TransferError) {
        _ = try SessionPlan(endpoint, options, for: direction)
    }

    /// Checks the same when an account is saved. Called by the queue, on the executor of its caller.
    public func validate(_ endpoint: Endpoint) throws(TransferError) { try Self.validate(endpoint) }

    /// Checks the same when a session is enqueued. Called by the queue, on its own and its callers' executors.
    public func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try Self.validate(options, for: direction, at: endpoint)
    }

    /// Decides what happens to two files that have one remote name: a `PUT` replaces the first one, and so may a form's handler, unless
    /// `{transfer}` gives each an address or a field of its own.
    public static func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
        (try? SessionPlan(endpoint, options, for: .upload))?.nameClash ?? .replaced
    }

    /// Decides the same when a session is enqueued. Called by the queue, on its callers' executors.
    public func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash { Self.nameClash(options, at: endpoint) }

    private let resources: ClientResources
    private let wait: @Sendable (Duration) async throws -> Void

    /// Makes a transport. Threads and connections come with the first attempt.
    ///
    /// - Parameter headers: Asked before each request to the endpoint, or to one of its setting `origins`, for the headers to send. After an answer
    ///   of 401 or 403 it is asked for new ones, once for all requests that were rejected with the same, and the request is sent once more.
    public init(headers: HeaderHook? = nil) {
        self.init(headers: headers, wait: { try await Task.sleep(for: $0) })
    }

    /// Makes a transport with threads and a clock of the caller's choice.
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

    /// Returns a transport with the same configuration, and with connections, threads and knowledge of servers of its own. Called by each queue
    /// that opens with this transport.
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
        return try await within(server.settings.transferTimeout, of: server) {
            switch attempt.payload {
            case .download(let destination):
                let file = try RemoteResource(server, attempt)
                let threads = resources.disks.threads(for: destination)
                return try await HTTPDownload(attempt, from: file, on: threads, reporting: reporter).run()
            case .upload(let source):
                return try await HTTPUpload(attempt, source, to: server, on: resources.disks, reporting: reporter).run()
            }
        }
    }

    /// Asks the server for the head of what is at the endpoint's address, with a `HEAD` request. Every answer but one that refuses the
    /// credentials, or says that the server failed, tells that it is there.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        try await HTTPServer(endpoint, credentials: credentials, resources: resources).report()
    }

    /// Closes all connections and ends the threads; requests still under way fail.
    public func shutdown() async {
        await resources.engine.shutdown()
    }

    /// Ends an attempt that takes longer than it may. What it leaves is as after a cancellation.
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
                    "The transfer with \(server.origin) took longer than the \(limit) that the setting transferTimeout allows.")
            }
            return receipt
        }
    }
}

extension TransportID {
    /// The ID of ``HTTPTransport``.
    public static let http: TransportID = "http"
}
