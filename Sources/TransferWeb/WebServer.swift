import Foundation
import Locking
public import SystemPackage
public import TransferControl
public import TransferKit

/// A web page and an HTTP interface for a queue.
///
/// Clients need one of two tokens: the token in the file `web.token` allows everything, and the one in `web-read.token` allows only reading. For a
/// `RemoteTransferQueue`, the files are in the storage folder; for other queues, in the folder that the app specifies.
///
/// Create the server with a queue, and call ``start()``, which returns the URL of the page. With a `RemoteTransferQueue`, the server accesses the
/// queue through the control socket of the process that owns the queue, so an error in the server can't affect the queue.
public final class WebServer: Sendable {
    private let folder: FilePath
    private let options: WebServerOptions
    private let site: Site
    /// The metrics that the server serves at `/metrics`.
    public let metrics = PrometheusMetrics()
    private let running = Locked<(listener: WebListener, tasks: [Task<Void, Never>])?>(nil)

    /// Creates a server for a queue of another process, without starting the server.
    ///
    /// The owner of the queue need not run yet. While there is no owner, the page shows a message.
    public convenience init(_ queue: RemoteTransferQueue, options: WebServerOptions = WebServerOptions()) {
        self.init(queue, tokensIn: queue.folder, options: options)
    }

    /// Creates a server for any queue, such as a queue of this process or a fleet, without starting the server.
    ///
    /// - Parameters:
    ///   - queue: The queue.
    ///   - folder: The folder for the token files. Other users must not be able to write to this folder. With ``WebServerOptions/program``,
    ///     this must be the storage folder of the queue, because the program checks this folder.
    ///   - options: The options of the server.
    public init(_ queue: any ControllableQueue, tokensIn folder: FilePath, options: WebServerOptions = WebServerOptions()) {
        self.folder = folder
        self.options = options
        site = Site(queue, options: options, folder: folder, metrics)
    }

    /// Starts the server and returns when it is listening.
    ///
    /// - Returns: The URL of the page, with the token for full access or, with ``WebServerOptions/isReadOnly``, the token for reading. A browser
    ///   that opens the URL gets a cookie, and then the page without the token.
    /// - Throws: A ``WebServerError`` if the address, the certificate or the tokens can't be used, if the address is not a loopback address and
    ///   there is no certificate, or if the server is already running.
    public func start() async throws(WebServerError) -> String {
        let isLoopback = RequestGuard.isLoopback(options.address)
        guard isLoopback || options.certificate != nil else {
            throw WebServerError(
                "\(options.address) is not a loopback address. Anyone with the token could use the queue from other machines, and without TLS, anyone on the network could read the token. Set a certificate with --certificate and --key."
            )
        }
        guard running.withLock({ $0 == nil }) else { throw WebServerError("The server is already running. Stop it first.") }
        let tokens = try await BlockingIO.run { [folder] () throws(WebServerError) in try AccessTokens.load(from: folder) }
        let admission = Admission(tokens, options)
        let listener = try await WebListener(options) { [site] request, body in await site.response(to: request, body, admission) }
        admission.setPort(listener.port)
        let tasks = [
            Task { [site] in await site.feed.run() }, Task { [site] in await site.sampleRates() },
            Task { [site] in await site.sendHeartbeats() },
        ]
        running.withLock { $0 = (listener, tasks) }
        let host = options.address.contains(":") ? "[\(options.address)]" : options.hostNames.first ?? options.address
        return
            "\(options.certificate == nil ? "http" : "https")://\(host):\(listener.port)/login?token=\(options.isReadOnly ? tokens.readToken : tokens.token)"
    }

    /// Interrupts all requests, and returns when the server has stopped.
    public func stop() async {
        let current = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let current else { return }
        for task in current.tasks { task.cancel() }
        await current.listener.stop()
    }
}
