import Foundation
import HTTPTypes
import HummingbirdCore
import HummingbirdTLS
import Locking
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import ServiceLifecycle
import SystemPackage

/// A server that is listening for connections.
final class WebListener: Sendable {
    let port: Int
    private let group: ServiceGroup
    private let task: Task<Void, any Error>
    private let channels: OpenChannels

    /// Starts the server and returns when it is listening.
    ///
    /// - Throws: ``WebServerError``.
    init(_ options: WebServerOptions, _ respond: @escaping @concurrent @Sendable (WebRequest, BodyReader) async -> WebResponse)
        async throws(WebServerError)
    {
        let channels = OpenChannels()
        let limits = options.limits
        let (ports, started) = AsyncThrowingStream.makeStream(of: Int.self)
        let handlers: @Sendable () -> [any RemovableChannelHandler] = { [RequestDeadlineHandler(limits)] }
        // This logger drops all messages, because Hummingbird logs each broken connection.
        let logger = Logger(label: "transferq-web", factory: { _ in SwiftLogNoOpLogHandler() })
        var builder = HTTPServerBuilder.http1(
            configuration: .init(
                additionalChannelHandlers: handlers(),
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: limits.headerSize, maxHeaderListSize: limits.headerSize, maxHeaderFieldCount: 100)))
        let group: ServiceGroup
        do {
            if let certificate = options.certificate { builder = try .tls(builder, tlsConfiguration: try Self.tls(certificate)) }
            let server = try builder.buildServer(
                configuration: ServerConfiguration(
                    address: .hostname(options.address, port: Int(options.port)),
                    availableConnectionsDelegate: .maximum(limits.connections, logger: logger)),
                eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: logger,
                responder: { request, writer, channel in
                    try channels.insert(channel)
                    defer { channels.remove(channel) }
                    try await Self.serve(request, writer, channel, limits, respond)
                },
                onServerRunning: { listener in started.yield(listener.localAddress?.port ?? Int(options.port)) })
            group = ServiceGroup(configuration: ServiceGroupConfiguration(services: [server], logger: logger))
        } catch let error as WebServerError {
            throw error
        } catch {
            throw WebServerError("Cannot use the TLS certificate: \(error).")
        }
        self.group = group
        self.channels = channels
        task = Task {
            do {
                try await group.run()
                started.finish()
            } catch {
                started.finish(throwing: error)
                throw error
            }
        }
        do {
            var iterator = ports.makeAsyncIterator()
            guard let bound = try await iterator.next() else { throw CancellationError() }
            port = bound
        } catch {
            throw WebServerError("Cannot listen on \(options.address):\(options.port): \(error). Choose another address with --listen.")
        }
    }

    func stop() async {
        channels.close()
        await group.triggerGracefulShutdown()
        try? await task.value
    }

    private static func tls(_ certificate: WebServerOptions.Certificate) throws -> TLSConfiguration {
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(certificate.chain.string).map { NIOSSLCertificateSource.certificate($0) }
            let key = try NIOSSLPrivateKey(file: certificate.key.string, format: .pem)
            return TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key))
        } catch {
            throw WebServerError("Cannot read the certificate \(certificate.chain) with the key \(certificate.key): \(error).")
        }
    }

    @concurrent
    private static func serve(
        _ request: Request, _ writer: consuming ResponseWriter, _ channel: any Channel, _ limits: WebLimits,
        _ respond: @concurrent @Sendable (WebRequest, BodyReader) async -> WebResponse
    ) async throws {
        let web = WebRequest(request.head)
        let reader = BodyReader(request, limit: limits.bodySize)
        let response = await respond(web, reader)
        let closes = !reader.isComplete || response.stream != nil
        // A client that does not read its response must not keep the connection open.
        let timer =
            response.stream == nil
            ? channel.eventLoop.scheduleTask(in: .milliseconds(limits.writeTime)) { channel.close(promise: nil) } : nil
        defer { timer?.cancel() }
        if let stream = response.stream {
            let body = try await writer.writeHead(response.head(closing: true))
            let timed = TimedBodyWriter(body, channel, limit: .milliseconds(limits.writeTime))
            // A stream that waits for events does not notice that the connection is closed. Without the cancellation, the server could not stop.
            let task = Task { try await stream(timed) }
            channel.closeFuture.whenComplete { _ in task.cancel() }
            try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
            throw ConnectionClosed()
        }
        let body = web.method == "HEAD" ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(string: response.body))
        try await writer.write(response: response.head(closing: closes), body: body)
        guard closes else { return }
        // Closing a connection with unread bytes would reset it, and the client could lose the response (RFC 9112, section 9.6).
        try? await reader.discard(upTo: 4 << 20)
        throw ConnectionClosed()
    }
}

/// An error that makes Hummingbird close the connection after a request.
private struct ConnectionClosed: Error {}

/// Writes a stream, and closes the connection if the client reads nothing for too long.
///
/// `@unchecked Sendable` is safe, because only the task that runs the stream uses the writer, and the connection waits for the end of this task.
private struct TimedBodyWriter: ResponseBodyWriter, @unchecked Sendable {
    private var writer: any ResponseBodyWriter
    private let channel: any Channel
    private let limit: TimeAmount

    init(_ writer: any ResponseBodyWriter, _ channel: any Channel, limit: TimeAmount) {
        self.writer = writer
        self.channel = channel
        self.limit = limit
    }

    @concurrent
    mutating func write(_ buffer: ByteBuffer) async throws {
        let timer = channel.eventLoop.scheduleTask(in: limit) { [channel] in channel.close(promise: nil) }
        defer { timer.cancel() }
        try await writer.write(buffer)
    }

    @concurrent
    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { try await writer.finish(trailingHeaders) }
}

/// The body of a request. Used only by the task that handles the request.
final class BodyReader {
    private let limit: Int
    private let length: Int?
    private var body: RequestBody.AsyncIterator
    private(set) var isComplete: Bool

    init(_ request: Request, limit: Int) {
        self.limit = limit
        let isChunked = request.headers.contains(.transferEncoding)
        length = isChunked ? nil : request.headers[.contentLength].flatMap { Int($0) } ?? 0
        isComplete = length == 0
        body = request.body.makeAsyncIterator()
    }

    @concurrent
    func read() async throws(Problem) -> [UInt8] {
        guard !isComplete else { return [] }
        let tooLarge = Problem(413, "bodyTooLarge", "The body has more than \(limit) bytes.")
        if let length, length > limit { throw tooLarge }
        var bytes: [UInt8] = []
        do {
            while let buffer = try await body.next() {
                bytes += buffer.readableBytesView
                guard bytes.count <= limit else { throw tooLarge }
            }
        } catch let problem as Problem {
            throw problem
        } catch {
            throw .invalid("The connection ended before the body was complete.")
        }
        isComplete = true
        return bytes
    }

    @concurrent
    func discard(upTo limit: Int) async throws {
        var count = 0
        while count < limit, let buffer = try await body.next() { count += buffer.readableBytes }
    }
}

/// The connections with requests in progress. After ``close()``, rejects new requests.
private final class OpenChannels: Sendable {
    private let state = Locked<(isClosed: Bool, channels: [ObjectIdentifier: any Channel])>((isClosed: false, channels: [:]))

    func insert(_ channel: any Channel) throws {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.channels[ObjectIdentifier(channel)] = channel }
            return state.isClosed
        }
        if isClosed { throw ConnectionClosed() }
    }

    func remove(_ channel: any Channel) { state.withLock { $0.channels[ObjectIdentifier(channel)] = nil } }

    func close() {
        let open = state.withLock { state in
            state.isClosed = true
            return Array(state.channels.values)
        }
        for channel in open { channel.close(promise: nil) }
    }
}
