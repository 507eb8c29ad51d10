public import CurlEngine
import HTTPSupport
public import TransferCore
public import TransportSupport

/// Uploads files to tus 1.0.0 servers (https://tus.io/protocols/resumable-upload), with the extensions that the server offers.
///
/// An interrupted upload resumes at the server's offset; bytes count as confirmed only when the server has reported them. A growing source
/// is sent as it grows; its length is sent with the last request if the server allows that (*creation-defer-length*), otherwise the upload
/// starts when the source is complete. Make endpoints with `Endpoint.tus`; ``TUSOptions`` are their options.
///
/// Downloads, which the protocol does not have, are `GET` requests for a name below the endpoint's address (RFC 9110). A download resumes
/// if the server still has the same version of the file, by a strong `ETag` or `Last-Modified`, and otherwise starts again.
///
/// ## Failed PATCH requests
///
/// After a failed `PATCH`, the transport asks for the server's offset with `HEAD`. If the server asks to back off for a time (429 and 503 with
/// `Retry-After`), a later attempt asks. If the server has everything, the upload is complete. Otherwise the attempt fails,
/// and a later one starts with `HEAD`; but in these cases the same attempt continues at once from the server's offset:
///
/// | result of the `PATCH` | after `HEAD` |
/// | --- | --- |
/// | The connection broke before all of the content was sent, and the server has none of it. | The same content, once, with `Expect: 100-continue`: a server that refuses content may close the connection without reading it, so that its response is lost. |
/// | 400, and the server does not know the length of a stream | When the stream is complete, the request with `Upload-Length`. |
/// | 401 or 403, and the app has a header hook | The request, once, with renewed headers. |
/// | 405 or 501 | The request as `POST` with `X-HTTP-Method-Override`, and so all later ones to this endpoint. |
/// | 409, and the server has another offset | The content from that offset, up to three times. |
/// | 413 | At most half as many bytes, and so on down to 256 KiB; the size is remembered for the endpoint. |
/// | 460 | The same content, up to three times in all. |
///
/// If `HEAD` shows that nothing of the last `PATCH` arrived, although it was interrupted after more than 1 MiB had left, the next one also
/// has at most half as many bytes: a proxy holds requests back until they are complete. The checkpoint stores the interruption and the
/// size, for a process that follows a killed one.
///
/// An attempt that starts with `HEAD` also sends `Expect` with its first `PATCH`. A server that closes the connection because of it, or
/// answers 417, gets it no more.
///
/// A value holds the configuration. Each queue makes an instance with connections and threads of its own (``makeInstance()``), so several
/// queues can use one value, at the same time or one after the other.
public struct TUSTransport: Transport, EndpointValidating, SessionValidating, EndpointChecking, PartialDiscarding {
    /// `tus`
    public let id: TransportID = .tus

    /// The C libraries in this process, each with its version.
    public static var libraries: [String] { CurlEngine.libraryVersion.split(separator: " ").map(String.init) }

    /// The documentation of the settings of endpoints, sorted by name.
    public static var settings: [SettingDescription] { TUSOptions.table.descriptions }

    /// Checks an endpoint without contacting the server: its address, its settings, and its headers.
    ///
    /// For programs that let users enter endpoints; on any executor. An attempt checks the same.
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

    /// Checks a session's options without contacting the server: that they are valid and can be sent.
    ///
    /// For programs that let users enter sessions; on any executor. An attempt checks the same. Another endpoint of the account may
    /// support what this transport does not.
    ///
    /// - Parameters:
    ///   - options: As an attempt gets them.
    ///   - direction: The direction of the session.
    /// - Throws: A `TransferError` that names the option: of the class `unsupported` if another transport may support it.
    public static func validate(_ options: AttemptOptions, for direction: TransferDirection) throws(TransferError) {
        guard options.settings.isEmpty else {
            throw TransferError(.unsupported, .unsupported, "The TUS transport has no settings for sessions.")
        }
        guard direction == .download || options.expectedChecksum == nil else {
            throw TransferError(
                .unsupported, .unsupported,
                "An expected checksum is only for downloads; choose the verification by checksums instead.")
        }
        _ = try ReservedHeaders.tus.sessionHeaders(options.headers)
        guard direction == .upload else { return }
        for key in options.metadata.keys.sorted() { try UploadMetadata.check(key) }
        if let url = options.uploadURL { try UploadPlace.check(url) }
    }

    /// Checks an endpoint when an account is saved. Called by the queue, on its caller's executor.
    public func validate(_ endpoint: Endpoint) throws(TransferError) { try Self.validate(endpoint) }

    /// Checks a session's options when it is enqueued. Called by the queue, on its own and its callers' executors.
    public func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try Self.validate(options, for: direction, at: endpoint)
    }

    /// Checks the same, and what depends on the endpoint; as ``validate(_:for:)``.
    public static func validate(
        _ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint
    ) throws(TransferError) {
        try validate(options, for: direction)
        guard direction == .upload, let chunkSize = options.chunkSize else { return }
        if let problem = try TUSOptions(settings: endpoint.settings).problem(ofChunksOf: chunkSize) {
            throw TransferError(.unsupported, .unsupported, problem)
        }
    }

    /// Six, in addition to those that wait for responses.
    public let smallFilesAhead = 6

    private let resources: TransportResources

    private init(resources: TransportResources) {
        self.resources = resources
    }

    /// Creates a transport. The first attempt starts its threads and connections.
    ///
    /// - Parameter headers: Called before each request for the headers to send.
    public init(headers: HeaderHook? = nil) {
        self.init(headers: headers, now: { .now })
    }

    /// Creates a transport with the caller's threads and clock, for a version of the protocol other than tus 1.0.0.
    package init(
        headers: HeaderHook? = nil, disks: DiskThreads = DiskThreads(limit: 4), dialect: Dialect = .tus,
        now: @escaping @Sendable () -> ContinuousClock.Instant
    ) {
        self.init(
            resources: TransportResources(
                client: ClientResources(disks: disks, hook: headers.map { HeaderSource($0, reserved: .tus) }),
                profiles: ServerProfileCache(now: now), dialect: dialect))
    }

    /// Returns a transport with the same configuration and with connections, threads and knowledge of servers of its own. Called by each
    /// queue that opens with this transport.
    public func makeInstance() -> TUSTransport {
        TUSTransport(
            resources: TransportResources(
                client: resources.client.makeInstance(), profiles: ServerProfileCache(now: resources.profiles.now),
                dialect: resources.dialect))
    }

    /// Uploads one file in as few requests as the server allows: one for a small file, otherwise a `POST` and a `PATCH`, if nothing fails.
    /// In addition, sends one `OPTIONS` a day per endpoint, and one `PATCH` that tries whether trailers arrive, if checksums are sent after
    /// content. Or downloads one file, in one request.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, after the server was asked how much of the file it has; or `CancellationError`.
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

    /// Downloads a file from below the endpoint's folder, where many tus servers offer complete uploads.
    private func download(_ attempt: FileAttempt, _ reporter: AttemptReporter) async throws -> TransferReceipt {
        let server = try TUSServer(attempt.endpoint, credentials: attempt.credentials, resources: resources, attempt: attempt)
        let threads = resources.client.disks.threads(for: try attempt.destination)
        return try await HTTPDownload(attempt, from: server.source(attempt), on: threads, reporting: reporter).run()
    }

    /// Asks for the server's features with an `OPTIONS` request, and, without a useful response, whether it is a tus server at all. Creates
    /// no upload. The report for a server that does not name its features is empty: an upload shows what it supports.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        try await TUSServer(endpoint, credentials: credentials, resources: resources).report()
    }

    /// Removes an unfinished upload, with a `DELETE` request (extension *termination*). An upload that the app created stays
    /// (`AttemptOptions.uploadURL`): a later attempt may have completed it since.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, of the class `unsupported` if the upload stays until it expires, because the server does not remove
    ///   uploads, does not allow it, or is no longer a tus server; or `CancellationError`.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        // Without a URL, the upload can't be found: the server never sent it.
        guard let urls = TUSCheckpoint(checkpoint)?.ownURLs, !urls.isEmpty else { return }
        let server = try TUSServer(endpoint, credentials: credentials, resources: resources)
        var failures: [TransferError] = []
        for url in urls {
            do { try await server.delete(url) } catch let error as TransferError {
                failures.append(error)
                if error.asksToBackOff { break }
            }
        }
        // A failure that may pass is more important than a final one.
        if let failure = failures.first(where: { $0.failureClass != .unsupported }) ?? failures.first { throw failure }
    }

    /// Closes all connections and ends the threads; running requests fail.
    public func shutdown() async {
        await resources.client.engine.shutdown()
    }
}

extension TransportID {
    /// The ID of ``TUSTransport``.
    public static let tus: TransportID = "tus"
}
