public import CurlEngine
import HTTPSupport
public import TransferCore
package import TransportSupport

/// Sends files to servers that speak tus 1.0.0 (https://tus.io/protocols/resumable-upload), with those of its extensions that the server
/// offers.
///
/// An interrupted upload goes on where the server says that it stands; bytes count as confirmed only when the server said so. A source that
/// still grows is sent as it comes; its length is told with the last request where the server allows that (*creation-defer-length*), and
/// otherwise all of it is awaited first. Endpoints are made with ``TransferCore/Endpoint/tus(_:credentials:settings:)``, which lists the
/// settings.
///
/// Downloads, which the protocol does not know, are `GET` requests for a name below the endpoint's address (RFC 9110). What was received is
/// continued if the server still has that version of the file, by a strong `ETag` or `Last-Modified`, and otherwise begins anew.
///
/// ## Requests that bring content
///
/// After each `PATCH` that fails, `HEAD` asks where the server stands; but one that says for how long it wants to be left alone (429 and 503 with
/// `Retry-After`) is asked by a later attempt. Where all has arrived, that is that. Otherwise the attempt fails, and a
/// later one begins with `HEAD`; but in these cases the same attempt goes on at once from where the server stands:
///
/// | what became of the `PATCH` | what comes after `HEAD` |
/// | --- | --- |
/// | The connection broke before all of the content was taken, and the server has none of it. | The same content, once, with `Expect: 100-continue`: a server that refuses content may close without reading it, and its answer is lost then. |
/// | 400, and the server was not told the length of a stream | All of the stream is awaited; then the request with `Upload-Length`. |
/// | 401 or 403, and the app has a header hook | The request, once, with headers that the hook renewed. |
/// | 405 or 501 | The request as `POST` with `X-HTTP-Method-Override`, as all later ones to this endpoint. |
/// | 409, and the server stands elsewhere | What follows from there, up to three times. |
/// | 413 | At most half as much at once, and so on down to 256 KiB; the size is kept for the endpoint. |
/// | 460 | The same content, up to three times in all. |
///
/// An attempt that finds by `HEAD` that nothing arrived of the last `PATCH`, after that was cut and more than 1 MiB of it had left, brings at most
/// half as much at once, too: something on the way keeps requests back until they are whole. What is needed for that is in the checkpoint, and so
/// is the size that was found, for a process that follows one which was killed.
///
/// An attempt that begins with `HEAD` sends `Expect` with its first `PATCH`, too. An endpoint that breaks the connection over that, or answers 417, is
/// sent none any more.
///
/// A value holds the configuration. Each queue makes an instance with connections and threads of its own (``makeInstance()``), so one value can be
/// used for several queues, at the same time or one after the other.
public struct TUSTransport: Transport, EndpointValidating, SessionValidating, EndpointChecking, PartialDiscarding {
    /// `tus`
    public let id: TransportID = .tus

    /// The C libraries that this process runs on, each with its version.
    public static var libraries: [String] { CurlEngine.libraryVersion.split(separator: " ").map(String.init) }

    /// Checks what can be known of an endpoint without asking anybody: its address, its settings, and the headers that it names.
    ///
    /// For programs that take endpoints from people, on any executor; an attempt checks the same.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint`.
    public static func validate(_ endpoint: Endpoint) throws(TransferError) {
        guard Origin(try endpoint.validate()) != nil else {
            throw TransferError(.permanent, .invalidEndpoint, "The endpoint address must begin with https:// or http:// for tus.")
        }
        let settings = try EndpointSettings(endpoint.settings)
        // Only who sets that is told: an account that has it from before goes on as it did.
        if let problem = settings.chunkSize.flatMap(settings.problem(ofChunksOf:)) { throw SettingsValue.invalid(problem) }
        try ReservedHeaders.tus.check(endpoint.credentials)
        try EndpointCredentials.check(endpoint)
    }

    /// Checks what can be known of a session's options without asking anybody: that each makes sense, and can be sent.
    ///
    /// For programs that take sessions from people, on any executor; an attempt checks the same. Another endpoint of the account may be able to do
    /// what one by this transport can't.
    ///
    /// - Parameters:
    ///   - options: As an attempt would get them.
    ///   - direction: That of the session.
    /// - Throws: A `TransferError` that names the option: of the class `unsupported` if another transport may be able to do that.
    public static func validate(_ options: AttemptOptions, for direction: TransferDirection) throws(TransferError) {
        guard options.settings.isEmpty else {
            throw TransferError(.unsupported, .unsupported, "The TUS transport has no setting that a session can change.")
        }
        guard direction == .download || options.expectedChecksum == nil else {
            throw TransferError(
                .unsupported, .unsupported,
                "A checksum that is expected is one of downloads; ask for the verification by checksums instead.")
        }
        _ = try ReservedHeaders.tus.sessionHeaders(options.headers)
        guard direction == .upload else { return }
        for key in options.metadata.keys.sorted() { try UploadMetadata.check(key) }
        if let url = options.uploadURL { try UploadPlace.check(url) }
    }

    /// Checks the same when an account is saved. Called by the queue, on the executor of its caller.
    public func validate(_ endpoint: Endpoint) throws(TransferError) { try Self.validate(endpoint) }

    /// Checks the same when a session is enqueued. Called by the queue, on its own and its callers' executors.
    public func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try Self.validate(options, for: direction, at: endpoint)
    }

    /// Checks the same, and what makes sense at this endpoint alone; as ``validate(_:for:)``.
    public static func validate(
        _ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint
    ) throws(TransferError) {
        try validate(options, for: direction)
        guard direction == .upload, let chunkSize = options.chunkSize else { return }
        if let problem = try EndpointSettings(endpoint.settings).problem(ofChunksOf: chunkSize) {
            throw TransferError(.unsupported, .unsupported, problem)
        }
    }

    /// Six, while as many wait for their answers.
    public let smallFilesAhead = 6

    private let resources: TransportResources

    private init(resources: TransportResources) {
        self.resources = resources
    }

    /// Makes a transport. Threads and connections come with the first attempt.
    ///
    /// - Parameter headers: Asked before each request for the headers to send.
    public init(headers: HeaderHook? = nil) {
        self.init(headers: headers, now: { .now })
    }

    /// Makes a transport with threads of the caller's choice, another version of the protocol than tus 1.0.0,
    /// and a clock that tells when what was learned of a server is too old.
    package init(
        headers: HeaderHook? = nil, disks: DiskThreads = DiskThreads(limit: 4), dialect: Dialect = .tus,
        now: @escaping @Sendable () -> ContinuousClock.Instant
    ) {
        self.init(
            resources: TransportResources(
                client: ClientResources(disks: disks, hook: headers.map { HeaderSource($0, reserved: .tus) }),
                memory: EndpointMemory(now: now), dialect: dialect))
    }

    /// Returns a transport with the same configuration, and with connections, threads and knowledge of servers of its own. Called by each queue
    /// that opens with this transport.
    public func makeInstance() -> TUSTransport {
        TUSTransport(
            resources: TransportResources(
                client: resources.client.makeInstance(), memory: EndpointMemory(now: resources.memory.now), dialect: resources.dialect))
    }

    /// Uploads one file in as few requests as the server allows: one for a small file, else a `POST` and a `PATCH`, if nothing goes wrong;
    /// and one `OPTIONS` a day for all files of an endpoint, and where checksums go behind content, one `PATCH` that tries whether they arrive. Or
    /// downloads one file, in one request.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, after it asked the server how much of the file it has; or `CancellationError`.
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

    /// Receives a file from below the endpoint's folder, as many tus servers give them: a complete upload, or whatever else is there.
    private func download(_ attempt: FileAttempt, _ reporter: AttemptReporter) async throws -> TransferReceipt {
        let server = try TUSServer(attempt.endpoint, credentials: attempt.credentials, resources: resources, attempt: attempt)
        let file = RemoteContent(server, path: attempt.remotePath)
        let threads = resources.client.disks.threads(for: try attempt.destination)
        return try await HTTPDownload(attempt, from: file, on: threads, reporting: reporter).run()
    }

    /// Asks the server what it can do, with an `OPTIONS` request; and where that says nothing, whether it is a tus server at all. No upload is made.
    /// The report of a server that is one and does not tell what it can do names no features: an upload shows which it has.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        try await TUSServer(endpoint, credentials: credentials, resources: resources).report()
    }

    /// Removes an unfinished upload, with a `DELETE` request (extension *termination*).
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, of the class `unsupported` if the upload stays there until it expires, as the server removes none, or does not
    ///   let us, or is none of tus any more; or `CancellationError`.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        // Without a URL nothing can be found: the server never told where it was.
        guard let urls = TUSCheckpoint(checkpoint)?.urls, !urls.isEmpty else { return }
        let server = try TUSServer(endpoint, credentials: credentials, resources: resources)
        var failures: [TransferError] = []
        for url in urls {
            do { try await server.delete(url) } catch let error as TransferError {
                failures.append(error)
                if error.wantsPeace { break }
            }
        }
        // What may work later comes before what never does.
        if let failure = failures.first(where: { $0.failureClass != .unsupported }) ?? failures.first { throw failure }
    }

    /// Closes all connections and ends the threads; requests still under way fail.
    public func shutdown() async {
        await resources.client.engine.shutdown()
    }
}

extension TransportID {
    /// The ID of ``TUSTransport``.
    public static let tus: TransportID = "tus"
}
