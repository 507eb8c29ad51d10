public import CurlEngine
import HTTPSupport
public import TransferCore
public import TransportSupport

/// Uploads files to tus 1.0.0 servers (https://tus.io/protocols/resumable-upload), with the extensions that the server offers, and to servers of the
/// IETF's successor to tus, *Resumable Uploads for HTTP* (draft-ietf-httpbis-resumable-upload). ``TUSOptions/dialect`` selects the protocol; the
/// article <doc:ResumableUploads> explains the IETF protocol. The following describes tus.
///
/// An interrupted upload resumes from the server's offset. Bytes count as confirmed only after the server has reported them. A growing source
/// is sent while it grows if its length is known, or if the server supports *creation-defer-length*. Otherwise, the upload starts when the
/// source is complete. Create endpoints with `Endpoint.tus` and ``TUSOptions``.
///
/// The protocol has no downloads. The transport downloads a file with a `GET` request for the file's name below the endpoint's address (RFC
/// 9110). A download resumes if the server still has the same version of the file, identified by a strong `ETag`, or by a `Last-Modified`
/// time that counts as strong. Otherwise, it restarts.
///
/// ## Failed PATCH requests
///
/// After a failed `PATCH` that may have reached the server, the transport requests the server's offset with `HEAD`. If the server asks the
/// client to back off (429 or 503 with `Retry-After`), a later attempt sends the `HEAD` instead. If the server has all bytes, the upload is complete.
/// Otherwise the attempt fails, and a later attempt starts with `HEAD`. In the following cases, however, the same attempt continues
/// immediately from the server's offset:
///
/// | result of the `PATCH` | what the attempt sends after `HEAD` |
/// | --- | --- |
/// | The connection broke before all of the content was sent, and the server has none of it. | The same content, one more time, with `Expect: 100-continue`. Without `Expect`, a server that rejects the content may close the connection without reading it, and its response is lost. |
/// | 400, and the server does not know the length of a stream | When the stream is complete, the request with `Upload-Length`. |
/// | 401 or 403, and the app has a header hook | The request, one more time, with renewed headers. |
/// | 405 or 501 | The request as `POST` with `X-HTTP-Method-Override`. All later `PATCH` requests to this endpoint are sent like this. |
/// | 409, and the server has another offset | The content from that offset, up to three times. |
/// | 413 | At most half as many bytes, repeatedly, down to 256 KiB. The limit also applies to later requests to this endpoint. |
/// | 460 | The same content, up to three times in total. |
///
/// The transport assumes that a proxy buffers whole requests if the network accepted more than 1 MiB of the last `PATCH`, but `HEAD` shows
/// that none of it arrived. The next `PATCH` then has at most half as many bytes. The checkpoint stores the interruption and the reduced
/// size, so a new process uses them after the old one was killed.
///
/// An attempt that starts with `HEAD` also sends `Expect` with its first `PATCH`. The transport stops sending `Expect` to a server that responds with
/// 417.
///
/// A transport value is only a configuration. Each queue creates an instance with its own connections (``makeInstance()``), so several
/// queues can use one value, at the same time or one after the other.
public struct TUSTransport: Transport, EndpointValidating, SessionValidating, EndpointChecking, PartialDiscarding {
    /// The ID of this transport, `tus`.
    public let id: TransportID = .tus

    /// libcurl and the libraries that it uses, each with its version.
    package static var libraries: [String] { CurlEngine.libraries }

    /// The descriptions of the settings of endpoints, sorted by name.
    public static var settings: [SettingDescription] { TUSOptions.table.descriptions }

    /// Checks an endpoint's address, settings and headers without contacting the server.
    ///
    /// Use this method in programs that let users enter endpoints. Call it on any executor. An attempt makes the same checks.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`.
    public static func validate(_ endpoint: Endpoint) throws(TransferError) {
        guard Origin(try endpoint.validate()) != nil else {
            throw TransferError(.permanent, .invalidEndpoint, "The endpoint address must begin with https:// or http:// for tus.")
        }
        _ = try TUSOptions(settings: endpoint.settings)
        try ReservedHeaders.tus.check(endpoint.credentials)
        try EndpointCredentials.check(endpoint)
    }

    /// Checks that a session's options are valid and can be sent, without contacting the server.
    ///
    /// Use this method in programs that let users enter sessions. Call it on any executor. An attempt makes the same checks. Another endpoint of the
    /// account may support options that this transport does not.
    ///
    /// - Parameters:
    ///   - options: The options as an attempt receives them.
    ///   - direction: The direction of the session.
    /// - Throws: A `TransferError` that names the option. Its class is `unsupported` if another transport may support the option.
    package static func validate(_ options: AttemptOptions, for direction: TransferDirection) throws(TransferError) {
        guard options.settings.isEmpty else {
            throw TransferError(.unsupported, .unsupported, "The TUS transport has no settings for sessions.")
        }
        guard direction == .download || options.expectedChecksum == nil else {
            throw TransferError(
                .unsupported, .unsupported,
                "An expected checksum is only for downloads; for uploads, verify checksums (--verify checksum).")
        }
        _ = try ReservedHeaders.tus.sessionHeaders(options.headers)
        guard direction == .upload else {
            guard options.creationURL == nil else {
                throw TransferError(.unsupported, .unsupported, "A creation URL is only for uploads.")
            }
            return
        }
        for key in options.metadata.keys.sorted() { try UploadMetadata.check(key) }
        if let url = options.uploadURL { try UploadURLCheck.check(url) }
        if let url = options.creationURL { try UploadURLCheck.check(url, as: "creation URL") }
    }

    /// Checks an endpoint when an account is saved. The queue calls this method on the executor of its caller.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`.
    public func validate(_ endpoint: Endpoint) throws(TransferError) { try Self.validate(endpoint) }

    /// Checks a session's options when the session is enqueued or changed. The queue calls this method on its own executor and on its callers'
    /// executors.
    ///
    /// - Throws: A `TransferError` that names the option.
    public func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try Self.validate(options, for: direction, at: endpoint)
    }

    /// Checks a session's options like ``validate(_:for:)``, and checks the chunk size and the creation URL against the endpoint.
    ///
    /// - Throws: A `TransferError` that names the option. Its class is `unsupported` if another endpoint may support the option.
    package static func validate(
        _ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint
    ) throws(TransferError) {
        try validate(options, for: direction)
        guard direction == .upload, options.chunkSize != nil || options.creationURL != nil else { return }
        let settings = try TUSOptions(settings: endpoint.settings)
        if let problem = options.chunkSize.flatMap(settings.problem(ofChunksOf:)) {
            throw TransferError(.unsupported, .unsupported, problem)
        }
        if let url = options.creationURL, let origin = Origin(try endpoint.validate()) {
            _ = try settings.origin(ofCreationURL: url, at: endpoint, origin)
        }
    }

    /// The number of additional small files to prepare while others wait for responses: 6.
    public let smallFilesAhead = 6

    /// The maximum number of small files in flight: 64. The queue adapts the number to the rate, up to this maximum.
    public let maximumSmallFilesInFlight = 64

    private let resources: TransportResources

    private init(resources: TransportResources) {
        self.resources = resources
    }

    /// Creates a transport. The first request starts its threads and connections.
    ///
    /// - Parameters:
    ///   - reuse: When the transport reuses the headers that the hook returned for a file; by default, never.
    ///   - headers: Called before each request to a trusted origin, unless the transport reuses headers; returns the headers to send. After
    ///     a 401 or 403, the transport calls the hook to renew the headers, but only once for all requests that were rejected with the same
    ///     headers. It then sends the rejected requests again.
    public init(reusingHeaders reuse: HeaderReuse = .never, headers: HeaderHook? = nil) {
        self.init(reusingHeaders: reuse, headers: headers, now: { .now })
    }

    /// Creates a transport that uses the given threads, clock and protocol version.
    package init(
        reusingHeaders reuse: HeaderReuse = .never, headers: HeaderHook? = nil, disks: DiskThreads = DiskThreads(limit: 4),
        dialect: Dialect = .tus,
        now: @escaping @Sendable () -> ContinuousClock.Instant
    ) {
        self.init(
            resources: TransportResources(
                client: ClientResources(disks: disks, hook: headers.map { HeaderHookCaller($0, reserved: .tus, reuse: reuse) }),
                profiles: ServerProfileCache(now: now), dialect: dialect))
    }

    /// Returns a transport with the same configuration, but with its own connections, network threads and cache of server features. The
    /// instances share the threads that read and write files. Each queue that opens with this transport calls this method.
    public func makeInstance() -> TUSTransport {
        TUSTransport(
            resources: TransportResources(
                client: resources.client.makeInstance(), profiles: ServerProfileCache(now: resources.profiles.now),
                dialect: resources.dialect))
    }

    /// Uploads or downloads one file.
    ///
    /// If nothing fails, an upload takes one request for a small file if the server supports *creation-with-upload*, otherwise a `POST` and
    /// a `PATCH`. Chunks, segments and verification require more. In addition, the transport sends one `OPTIONS` request a day per
    /// endpoint. If it sends checksums as trailers, it also sends one `PATCH` a day that shows whether trailers arrive. A download takes
    /// one request.
    ///
    /// The queue calls this method on a separate task.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        if case .download = attempt.payload {
            try Self.validate(attempt.options, for: .download)
            return try await download(attempt, reporter)
        }
        try Self.validate(attempt.options, for: .upload)
        let source = try attempt.source
        let server = try TUSServer(attempt.endpoint, credentials: attempt.credentials, resources: resources, attempt: attempt)
        let threads = resources.client.disks.threads(for: source)
        let file = try await FileReader.open(source, on: threads)
        return try await TUSUpload(attempt, server: server, file: file, threads: threads, reporter: reporter).run()
    }

    /// Downloads a file from below the endpoint's address, where many tus servers offer complete uploads.
    private func download(_ attempt: FileAttempt, _ reporter: AttemptReporter) async throws -> TransferReceipt {
        let server = try TUSServer(attempt.endpoint, credentials: attempt.credentials, resources: resources, attempt: attempt)
        let threads = resources.client.disks.threads(for: try attempt.destination)
        return try await HTTPDownload(attempt, from: server.source(attempt), on: threads, reporting: reporter).run()
    }

    /// Checks that the server supports a protocol that ``TUSOptions/dialect`` allows, and returns the features that the server lists.
    /// Creates no upload. If a tus server does not list its features, the report contains none.
    ///
    /// The queue calls this method on a separate task.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        try await TUSServer(endpoint, credentials: credentials, resources: resources).report()
    }

    /// Removes an unfinished upload with a `DELETE` request (extension *termination*). An upload that the app created (`AttemptOptions.uploadURL`)
    /// stays, because a later attempt may have completed it.
    ///
    /// The queue calls this method on a separate task.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`. The class is `unsupported` if the server does not remove uploads, or does not
    ///   allow this account to remove this one. The upload then stays until it expires.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        // If the server has not sent a URL, the upload can't be found.
        guard let stored = TUSCheckpoint(checkpoint), case let urls = stored.ownURLs, !urls.isEmpty else { return }
        var server = try TUSServer(endpoint, credentials: credentials, resources: resources)
        if let dialect = stored.whole.dialect.flatMap({ Dialect(storedName: $0) }) { server.dialect = dialect }
        var failures: [TransferError] = []
        for url in urls {
            do { try await server.delete(url) } catch let error as TransferError {
                failures.append(error)
                if error.asksToBackOff { break }
            }
        }
        // A failure that a retry may resolve takes precedence over a permanent one.
        if let failure = failures.first(where: { $0.failureClass != .unsupported }) ?? failures.first { throw failure }
    }

    /// Closes all connections and stops the network threads. Running requests fail.
    public func shutdown() async {
        await resources.client.engine.shutdown()
    }
}

extension TransportID {
    /// The ID of ``TUSTransport``.
    public static let tus: TransportID = "tus"
}
