import Foundation
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import TransferCore

/// A server that is listening for connections.
final class RunningServer: Sendable {
    let store: UploadStore
    let url: URL
    private let group: ServiceGroup
    private let task: Task<Void, any Error>
    private let connections: OpenRequests

    /// Starts the server and returns when it is listening.
    ///
    /// - Throws: A ``LoopbackError`` if the port can't be used.
    init(port: UInt16, handler: RequestHandler) async throws {
        let connections = OpenRequests()
        // A test server logs nothing.
        let logger = Logger(label: "tus-loopback", factory: { _ in SwiftLogNoOpLogHandler() })
        let (ports, started) = AsyncThrowingStream.makeStream(of: Int.self)
        let handlers: @Sendable () -> [any RemovableChannelHandler] = { [ArrivalHandler(handler.arrivalOrder), SocketShutdownHandler()] }
        let server = try HTTPServerBuilder.http1(configuration: .init(additionalChannelHandlers: handlers()))
            .buildServer(
                configuration: ServerConfiguration(address: .hostname("127.0.0.1", port: Int(port))),
                // All connections share one event loop; see ArrivalOrder.
                eventLoopGroup: MultiThreadedEventLoopGroup.singleton.next(), logger: logger,
                responder: { request, writer, channel in
                    let connection = Connection(channel)
                    try connections.insert(connection)
                    defer { connections.remove(connection) }
                    try await handler.serve(Exchange(request, writer, on: connection))
                },
                onServerRunning: { listener in
                    handler.arrivalOrder.setListener(listener)
                    // The call fails only if the listener is already closed.
                    try? await listener.eventLoop.submit {
                        try listener.pipeline.syncOperations.addHandler(SocketShutdownHandler(), position: .first)
                    }.get()
                    started.yield(listener.localAddress?.port ?? Int(port))
                })
        let group = ServiceGroup(configuration: ServiceGroupConfiguration(services: [server], logger: logger))
        task = Task {
            do {
                try await group.run()
                started.finish()
            } catch {
                started.finish(throwing: error)
                throw error
            }
        }
        var iterator = ports.makeAsyncIterator()
        let origin: String
        do {
            guard let bound = try await iterator.next() else { throw CancellationError() }
            origin = "http://127.0.0.1:\(bound)"
        } catch {
            throw LoopbackError("Cannot listen on 127.0.0.1:\(port): \(error). Choose another port, or 0 for any free port.")
        }
        guard let url = URL(string: origin + RequestHandler.root) else { throw LoopbackError("\(origin) is not a URL.") }
        self.url = url
        self.group = group
        self.connections = connections
        store = handler.store
    }

    /// Cuts all connections and returns when the received bytes are stored.
    func stop() async {
        connections.stop()
        await group.triggerGracefulShutdown()
        // Errors during the start were already reported. Later errors don't matter, because all connections are closed.
        try? await task.value
    }
}
