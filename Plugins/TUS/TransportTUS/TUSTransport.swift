import CurlEngine
public import TransferCore
import TransportSupport

/// Sends files to servers that speak tus 1.0.0 (https://tus.io/protocols/resumable-upload): the core protocol and the extension *creation*,
/// and *termination* where the server has it.
///
/// An interrupted upload goes on where the server says that it stands; bytes count as confirmed only when the server said so. Endpoints are
/// made with ``TransferCore/Endpoint/tus(_:credentials:settings:)``, which lists the settings.
public struct TUSTransport: Transport, EndpointChecking, PartialDiscarding {
    /// `tus`
    public let id: TransportID = .tus

    /// The C libraries that this process runs on, each with its version.
    public static var libraries: [String] { CurlEngine.libraryVersion.split(separator: " ").map(String.init) }

    let engine: CurlEngine
    let threads: WorkerThreads
    let acceptance: Acceptance

    /// Makes a transport. Threads and connections come with the first attempt.
    public init() {
        engine = CurlEngine()
        threads = WorkerThreads(limit: 4)
        acceptance = Acceptance()
    }

    /// Uploads one file in as few requests as the protocol allows: `POST` and one `PATCH` if nothing goes wrong.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, after it asked the server how much of the file it has; or `CancellationError`.
    public func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let server = try TUSServer(attempt.endpoint, credentials: attempt.credentials, engine: engine, acceptance: acceptance)
        let metadata = try UploadMetadata(attempt)
        let file = try await FileReader.open(try attempt.source, on: threads)
        var upload = TUSUpload(server: server, file: file, metadata: metadata, checkpoint: attempt.checkpoint, reporter: reporter)
        return try await upload.run()
    }

    /// Asks the server what it can do, with an `OPTIONS` request.
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, or `CancellationError`.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        let server = try TUSServer(endpoint, credentials: credentials, engine: engine, acceptance: acceptance)
        return try await server.options()
    }

    /// Removes an unfinished upload, with a `DELETE` request (extension *termination*).
    ///
    /// Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, of the class `unsupported` if the server removes uploads only when they expire; or `CancellationError`.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        // Without a URL nothing can be found: the server never told where it was.
        guard let url = TUSCheckpoint(checkpoint)?.url else { return }
        let server = try TUSServer(endpoint, credentials: credentials, engine: engine, acceptance: acceptance)
        try await server.delete(url)
    }

    /// Closes all connections and ends the threads; requests still under way fail.
    public func shutdown() async {
        await engine.shutdown()
    }
}

extension TransportID {
    /// The ID of ``TUSTransport``.
    public static let tus: TransportID = "tus"
}
